// A third file, for pages that ask for it with a script tag of its own: what caused the web vitals
// (`data-attribution="true"`), and frames a second after an interaction (`data-fps="true"`).

import { onCLS, onFCP, onINP, onLCP, onTTFB } from "web-vitals/attribution";

import type { Core } from "./index";

const FRAMES_MS = 3000;

/** Report an event for each metric, with all that is known of its cause as properties. */
const reportCauses = ({ track }: Core): void => {
  for (const watch of [onCLS, onFCP, onINP, onLCP, onTTFB]) {
    watch(
      ({ name, value, rating, attribution }) => {
        const causes = Object.entries(attribution).filter(([, cause]) => Object(cause) !== cause);
        track("web_vital", { metric: name, value, rating, ...Object.fromEntries(causes) });
      },
      { reportSoftNavs: true },
    );
  }
};

/** Count the frames of some seconds after the first interaction with each page. */
const watchFrames = ({ put }: Core): void => {
  let path = "";
  const sample = (): void => {
    if (path === location.pathname) return;
    path = location.pathname;
    let frames = 0;
    let began = 0;
    const count = (now: number): void => {
      began ||= now;
      const elapsed = now - began;
      if (elapsed < FRAMES_MS) {
        frames++;
        requestAnimationFrame(count);
      } else if (elapsed < 2 * FRAMES_MS) {
        // otherwise the page was hidden meanwhile, and had no frames
        put("vitals", { metricName: "FPS", metricValue: (frames * 1000) / elapsed });
      }
    };
    requestAnimationFrame(count);
  };
  for (const name of ["click", "keydown", "scroll"]) addEventListener(name, sample, true);
};

const { headrace } = self as unknown as { headrace?: Core };
const { attribution, fps } = (document.currentScript as HTMLScriptElement).dataset;
if (headrace) {
  if (attribution === "true") reportCauses(headrace);
  if (fps === "true") watchFrames(headrace);
}
