"use client";

import { identify, track } from "@databuddy/sdk";
import { useEffect } from "react";

export default function Page() {
  useEffect(() => {
    identify("account-7", { plan: "pro" });
    track("signup", { plan: "pro" });
  }, []);
  return <h1>Welcome</h1>;
}
