import { setTimeout as delay } from "node:timers/promises";
import { hangUp } from "../dev/hang-up.ts";
import type { Outgoing } from "./traffic.ts";

/** Clients that hang up at a time, and how long each waits before its next request, in milliseconds. */
const AT_ONCE = 4;
const PAUSE_MS = 20;

/** The longest that one stays, in milliseconds: about what most answers take. */
const STAYS_MS = 40;

/**
 * Sends requests like those of the load and hangs up on their answers, by RST and by FIN, for as long
 * as a task goes on.
 *
 * @returns how many were cut
 */
export async function hangUpDuring(
  task: Promise<unknown>,
  urls: readonly URL[],
  next: () => Outgoing,
): Promise<number> {
  let [isOver, cuts] = [false, 0];
  const over = task.finally(() => {
    isOver = true;
  });
  async function cutting(lane: number): Promise<void> {
    while (!isOver) {
      const { method, path, client } = next();
      const request = { method, path, headers: { "CF-Connecting-IP": client } };
      const way = cuts % 3 === 0 ? "end" : "reset";
      cuts += 1;
      // A prime keeps the moments from repeating with the traffic's own period.
      const when = (cuts * 7) % STAYS_MS;
      // A Worker that lets nobody connect is the load's to report.
      await hangUp(urls[lane % urls.length] as URL, request, { way, when }).catch(() => {});
      await delay(PAUSE_MS);
    }
  }
  await Promise.all([over, ...Array.from({ length: AT_ONCE }, (_, lane) => cutting(lane))]);
  return cuts;
}
