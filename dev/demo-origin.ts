import { createServer } from "node:http";
import { type ListenOptions, listen } from "./loopback.ts";
import { requestTarget } from "./request-target.ts";

/** An origin for Weir to stand in front of. */
export type DemoOrigin = { url: string; stop(): Promise<void> };

/**
 * Starts something to protect: an origin that answers every request with 200 and with what it saw
 * of it, so that a request that came through can be told from one that did not.
 *
 * @throws when the port is taken.
 */
export async function startDemoOrigin(options: ListenOptions = {}): Promise<DemoOrigin> {
  // No timeout: closing an idle connection could meet a request that has just been sent on it.
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const { path, query } = requestTarget(request);
    const seen = {
      message: "Hello from the demo origin.",
      method: request.method,
      path,
      query: Object.fromEntries(query),
    };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(`${JSON.stringify(seen, null, 2)}\n`);
  });
  const { host, port, stop } = await listen(server, options);
  return { url: `http://${host}:${port}`, stop };
}
