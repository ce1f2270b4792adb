// Declarative clicks, outgoing links and downloads.

import type { Item } from "./outbox";
import { cut } from "./texts";

const DOWNLOAD = /\.(pdf|zip|gz|dmg|exe|msi|apk|csv|xlsx?|docx?|pptx?|mp[34]|mov|iso)$/i;

/** Return the handler of clicks. */
export const watchClicks =
  (options: DOMStringMap, track: (name: string, properties: Item) => void) =>
  (event: MouseEvent): void => {
    // the path has also what is within shadow roots; it is empty where the click was earlier
    const find = (selector: string): Element | null | undefined =>
      (event.composedPath() as Element[]).find((node) => node.matches?.(selector)) ||
      (event.target as Element).closest?.(selector);
    const named = find("[data-track]") as HTMLElement | undefined;
    if (named && options.trackAttributes !== "false") {
      const { track: name, ...properties } = named.dataset;
      if (name) track(name, properties);
    }
    const link = find("a[href]") as HTMLAnchorElement | undefined;
    if (!link) return;
    const { href, hostname, pathname } = link;
    if (options.trackDownloads === "true" && DOWNLOAD.test(pathname)) {
      track("file_download", { href });
    } else if (options.trackOutgoingLinks === "true" && hostname && hostname !== location.hostname) {
      track("outgoing_link", { href, text: cut(link.textContent!.trim(), 100) });
    }
  };
