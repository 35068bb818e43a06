import { setTimeout as delay } from "node:timers/promises";
import { hangUp } from "../dev/hang-up.ts";
import type { OutgoingRequest } from "./traffic.ts";

/** The number of clients that hang up in parallel. */
const CLIENTS = 4;

/** How long each client waits before its next request, in milliseconds. */
const PAUSE_MS = 20;

/**
 * The maximum time from a client's request until it hangs up, in milliseconds. Most responses take
 * approximately this time.
 */
const MAX_STAY_MS = 40;

/**
 * Sends requests until a task has ended. Each client hangs up before or during the response: in one
 * request of three by TCP FIN, otherwise by RST.
 *
 * @returns the number of requests during which a client hung up
 */
export async function hangUpDuring(
  task: Promise<unknown>,
  urls: readonly URL[],
  nextRequest: () => OutgoingRequest,
): Promise<number> {
  let [isOver, hangUps] = [false, 0];
  const over = task.finally(() => {
    isOver = true;
  });
  async function hangUpAgainAndAgain(client: number): Promise<void> {
    while (!isOver) {
      const { method, path, client: address } = nextRequest();
      const request = { method, path, headers: { "CF-Connecting-IP": address } };
      const way = hangUps % 3 === 0 ? "end" : "reset";
      hangUps += 1;
      // 7 and 40 have no common factor, so the times take all values from 0 to 39 ms in turn.
      const when = (hangUps * 7) % MAX_STAY_MS;
      // Errors are ignored here, because the load generator reports a Worker that accepts no
      // connections.
      await hangUp(urls[client % urls.length] as URL, request, { way, when }).catch(() => {});
      await delay(PAUSE_MS);
    }
  }
  const clients = Array.from({ length: CLIENTS }, (_, client) => hangUpAgainAndAgain(client));
  await Promise.all([over, ...clients]);
  return hangUps;
}
