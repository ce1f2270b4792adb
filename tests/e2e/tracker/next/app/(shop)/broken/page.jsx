"use client";

import { useState } from "react";

export default function Broken() {
  const [isBroken, setBroken] = useState(false);
  if (isBroken) throw new TypeError("no cart");
  return <button onClick={() => setBroken(true)}>Break</button>;
}
