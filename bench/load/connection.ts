import { type Dispatcher, Pool } from "undici";
import type { Outgoing } from "./clients.ts";

/** Connections to one Worker that are kept alive; each carries one request at a time. */
export type Connection = {
  /** Sends a request, and resolves to the status once the whole answer is there. */
  send(outgoing: Outgoing): Promise<number>;
  close(): Promise<void>;
};

/**
 * Opens connections as they are needed, at most so many. By undici's `dispatch`, its lowest layer: the load generator shares the
 * machine with what it measures, so what it does not do itself is left for the Workers.
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
