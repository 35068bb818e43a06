import { type Dispatcher, Pool } from "undici";
import type { Outgoing } from "./traffic.ts";

/** What came of a request. */
export type Answer = {
  /** 0 where the connection broke. */
  status: number;
  /** The RateLimit field; undefined where there is none. */
  rateLimit: string | undefined;
  /** By the wall clock, in milliseconds since the Unix epoch. */
  sentAt: number;
  answeredAt: number;
  /** From sending to having it all. */
  ms: number;
};

export type Load = {
  /** Keeps all connections busy for so long, in milliseconds. */
  run(
    ms: number,
    next: () => Outgoing,
    heard: (outgoing: Outgoing, answer: Answer) => void,
  ): Promise<void>;
  stop(): Promise<void>;
};

/** Connections that are kept alive, each sending its next request when it has an answer. */
export function createLoad(urls: readonly URL[], connections: number): Load {
  const each = Math.ceil(connections / urls.length);
  const pools = urls.map((url) => new Pool(url.origin, { connections: each, pipelining: 1 }));
  const lanes = pools.flatMap((pool) => Array.from({ length: each }, () => pool));
  return {
    async run(ms, next, heard) {
      const until = performance.now() + ms;
      await Promise.all(
        lanes.map(async (pool) => {
          while (performance.now() < until) {
            const outgoing = next();
            heard(outgoing, await send(pool, outgoing));
          }
        }),
      );
    },
    async stop() {
      await Promise.all(pools.map((pool) => pool.destroy()));
    },
  };
}

/** By undici's lowest layer, since the load shares the machine with what it measures. */
function send(pool: Pool, { method, path, client }: Outgoing): Promise<Answer> {
  return new Promise((resolve) => {
    const [sentAt, startedAt] = [Date.now(), performance.now()];
    let status = 0;
    let rateLimit: string | undefined;
    const end = (ended: number) =>
      resolve({
        status: ended,
        rateLimit,
        sentAt,
        answeredAt: Date.now(),
        ms: performance.now() - startedAt,
      });
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart() {},
      onResponseStart(_, statusCode, headers) {
        status = statusCode;
        rateLimit = headers.ratelimit as string | undefined;
      },
      onResponseData() {},
      onResponseEnd: () => end(status),
      onResponseError: () => end(0),
    };
    pool.dispatch({ method, path, headers: { "cf-connecting-ip": client } }, handler);
  });
}
