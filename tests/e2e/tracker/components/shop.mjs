// What a shop does with the SDK, whatever its components are made with.
import {
  getProfileId,
  getTrackingIds,
  identify,
  setGlobalProperties,
  track,
  trackError,
} from "@databuddy/sdk";

/** Show the component, and call the SDK before its script has been loaded. */
export const useShop = (show, hide) => {
  addEventListener("DOMContentLoaded", () => {
    show();
    setGlobalProperties({ shop: "north" });
    identify("account-7", { plan: "pro" });
    track("signup", { plan: "pro" });
    trackError("no stock", { product: 7 });
  });
  const fail = () =>
    setTimeout(() => {
      throw new TypeError("no cart");
    });
  window.shop = { show, hide, fail, ids: () => ({ ...getTrackingIds(), profile: getProfileId() }) };
};
