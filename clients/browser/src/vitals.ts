// Web vitals: final values, also those of soft navigations.

import { onCLS, onFCP, onINP, onLCP, onTTFB, type MetricType } from "web-vitals";

import type { Core } from "./index";
import type { Item } from "./outbox";

/** Sends a request when the page is gone. Where it is missing or refused, items go to the outbox. */
let { fetchLater } = self as {
  fetchLater?: ((url: string, init: RequestInit) => unknown) | undefined;
};

/** Report all metrics of the page. */
export const watchVitals = (headrace: Core): void => {
  const { clean, optOut, options, put, server } = headrace;
  let latest: Record<string, Item> = {};
  let pending: AbortController | undefined;

  /** Replace the request that is pending by one that has the item, too. */
  const keep = (_?: string, item?: Item): void => {
    if (item) latest[item.eventId as string] = item;
    pending?.abort();
    pending = new AbortController();
    try {
      fetchLater!(`${server}/vitals?client_id=${options.clientId}`, {
        method: "POST",
        body: JSON.stringify(Object.values(latest)),
        signal: pending.signal,
      });
    } catch {
      // the page may not, or has used up the quota of such requests: one that was pending is gone
      fetchLater = item && fetchLater;
      Object.values(latest).forEach((one) => put("vitals", one));
      latest = {};
    }
  };
  keep(); // nothing yet, to see whether the page may
  pending!.abort();
  headrace.optOut = () => {
    pending?.abort();
    optOut();
  };
  for (const watch of [onCLS, onFCP, onINP, onLCP, onTTFB]) {
    watch(
      ({ id, name, value, navigationURL }: MetricType) => {
        const path = clean(new URL(navigationURL || (location as unknown as URL)));
        const item = { path, eventId: id, metricName: name, metricValue: value };
        put("vitals", item, fetchLater && keep);
      },
      { reportAllChanges: !!fetchLater, reportSoftNavs: true },
    );
  }
};
