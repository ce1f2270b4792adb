// Declarative clicks, outgoing links and downloads.

import type { Item } from "./outbox";

const DOWNLOAD = /\.(pdf|zip|gz|dmg|exe|msi|apk|csv|xlsx?|docx?|pptx?|mp[34]|mov|iso)$/i;

/** Return the handler of clicks. */
export const watchClicks =
  (options: DOMStringMap, track: (name: string, properties: Item) => void) =>
  ({ target }: MouseEvent): void => {
    const element = target as Element;
    if (!element.closest) return;
    const named = element.closest<HTMLElement>("[data-track]");
    if (named && options.trackAttributes !== "false") {
      const { track: name, ...properties } = named.dataset;
      if (name) track(name, properties);
    }
    const link = element.closest<HTMLAnchorElement>("a[href]");
    if (!link) return;
    const { href, hostname, pathname } = link;
    if (DOWNLOAD.test(pathname)) {
      if (options.trackDownloads === "true") track("file_download", { href });
    } else if (options.trackOutgoingLinks === "true" && hostname && hostname !== location.hostname) {
      track("outgoing_link", { href, text: link.textContent!.trim().slice(0, 100) });
    }
  };
