import { relativeTime } from "../format.ts";

const INTERVAL_MS = 5000;

/** Keeps relative times true while a page is open. */
export function refreshTimes(root: Document): void {
  setInterval(() => {
    if (root.hidden) return;
    for (const time of root.querySelectorAll<HTMLTimeElement>("time[data-relative]")) {
      time.textContent = relativeTime(Date.parse(time.dateTime), Date.now());
    }
  }, INTERVAL_MS);
}
