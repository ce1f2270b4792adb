// A page with the component of the Vue guide, which is mounted, taken away and mounted again.
import { createApp } from "vue";

import { Analytics } from "./analytics.js";
import { useShop } from "./shop.mjs";

const main = document.body.appendChild(document.createElement("main"));
let app;
useShop(
  () => (app = createApp(Analytics)).mount(main),
  () => app.unmount(),
);
