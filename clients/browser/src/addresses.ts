// What is sent of the address of a page.

import { matches, options } from "./config";

const MAX_ADDRESS = 2000; // the service refuses an item with more than 2,048

export const hash = (): string => (options.trackHashChanges === "true" ? location.hash : "");

/** What is sent of an address: nothing of a skipped page, and of a masked one neither its last part
 * nor its query. `end` is added.
 *
 * Of a query only campaigns and click ids are kept: the rest may name somebody, or let them in.
 * What is too long is cut: otherwise nothing of the page would be stored.
 */
export const clean = ({ origin, pathname, search }: Location | URL, end = ""): string =>
  matches("skipPatterns", pathname)
    ? ""
    : (
        origin +
        (matches("maskPatterns", pathname)
          ? pathname.replace(/[^/]+$/, "*")
          : pathname + search.replace(/[?&](?!utm_|\w*clk?id=)[^&]*/g, "").replace(/^&/, "?")) +
        end
      ).slice(0, MAX_ADDRESS);

/** What is sent of the address of the page. */
export const address = (): string => clean(location, hash());
