import { type Dispatcher, Pool } from "undici";
import type { OutgoingRequest } from "./clients.ts";

/** Kept-alive connections to one Worker. Each carries one request at a time. */
export interface Connection {
  /** Sends a request. @returns the status, after the whole response has arrived */
  send(request: OutgoingRequest): Promise<number>;
  close(): Promise<void>;
}

/**
 * Opens connections on demand. It uses `dispatch`, undici's lowest layer, to leave more CPU time to
 * the Workers, which share the machine with the load generator.
 *
 * @param connections the maximum number of connections
 */
export function connect(url: URL, connections = 1): Connection {
  const pool = new Pool(url.origin, { connections, pipelining: 1 });
  return {
    send: ({ client, path }) =>
      new Promise((resolve, reject) => {
        let status = 0;
        const handler: Dispatcher.DispatchHandler = {
          onRequestStart() {},
          onResponseStart(_, statusCode) {
            status = statusCode;
          },
          onResponseData() {},
          onResponseEnd: () => resolve(status),
          onResponseError: (_, error) => reject(error),
        };
        const headers = { "cf-connecting-ip": client };
        pool.dispatch({ method: "GET", path, headers }, handler);
      }),
    close: () => pool.destroy(),
  };
}
