/** A request that is further after one of those that follow it has a wrong time, in milliseconds. */
const JUMP_MS = 3_600_000;

/** How many requests are compared. */
const COMPARED = 16;

/**
 * Returns the time by which a request is compared with those of other files. This is the request's own time, except
 * if it is far after the requests that follow it in its file: a single line with a wrong time would otherwise keep
 * its file waiting until the end of all others.
 */
export function plausibleTime<Request>(
  requests: readonly Request[],
  index: number,
  timeOf: (request: Request) => number,
): number {
  const at = timeOf(requests[index] as Request);
  let earliest = at;
  const end = Math.min(requests.length, index + COMPARED);
  for (let next = index + 1; next < end; next++) {
    earliest = Math.min(earliest, timeOf(requests[next] as Request));
  }
  return at - earliest > JUMP_MS ? earliest : at;
}
