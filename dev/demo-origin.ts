import { createServer } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { type ListenOptions, listen } from "./loopback.ts";
import { requestTarget } from "./request-target.ts";

/** An origin that Weir can protect. */
export interface DemoOrigin {
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Starts an origin that answers every request with 200 and with the method, path and query that it
 * received. So its answers differ from Weir's answers.
 *
 * @param options `delayMs`: the delay of each answer, in milliseconds; 0 by default
 * @throws if the port is in use
 */
export async function startDemoOrigin({
  delayMs = 0,
  ...options
}: ListenOptions & { readonly delayMs?: number } = {}): Promise<DemoOrigin> {
  // A server with a timeout could close an idle connection while a request arrives on it.
  const server = createServer({ keepAliveTimeout: 0 }, async (request, response) => {
    if (delayMs > 0) await delay(delayMs);
    const { path, query } = requestTarget(request);
    const received = {
      message: "Hello from the demo origin.",
      method: request.method,
      path,
      query: Object.fromEntries(query),
    };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(`${JSON.stringify(received, null, 2)}\n`);
  });
  const { host, port, stop } = await listen(server, options);
  return { url: `http://${host}:${port}`, stop };
}
