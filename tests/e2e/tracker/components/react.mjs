// A page with the component of the React guide, which is mounted, taken away and mounted again.
import { createElement } from "react";
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";

import { Analytics } from "./analytics.jsx";
import { useShop } from "./shop.mjs";

const root = createRoot(document.body.appendChild(document.createElement("main")));
useShop(() => flushSync(() => root.render(createElement(Analytics))), () => flushSync(() => root.render(null)));
