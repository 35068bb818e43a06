import { type Dispatcher, Pool } from "undici";
import type { OutgoingRequest } from "./traffic.ts";

/** The result of a request: a response, or a broken connection. */
export interface Answer {
  /** The HTTP status; 0 when the connection broke. */
  readonly status: number;
  /** The RateLimit field; undefined when the response has none. */
  readonly rateLimit: string | undefined;
  /** Wall-clock time, in milliseconds since the Unix epoch. */
  readonly sentAt: number;
  /** Wall-clock time, in milliseconds since the Unix epoch. */
  readonly answeredAt: number;
  /** The time from sending the request to the end of the response, in milliseconds. */
  readonly durationMs: number;
}

export interface LoadGenerator {
  /** Keeps all connections busy for `durationMs` milliseconds. */
  run(
    durationMs: number,
    nextRequest: () => OutgoingRequest,
    onAnswer: (request: OutgoingRequest, answer: Answer) => void,
  ): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Opens kept-alive connections. Each connection sends its next request as soon as it has an answer.
 */
export function createLoadGenerator(urls: readonly URL[], connections: number): LoadGenerator {
  const perUrl = Math.ceil(connections / urls.length);
  const pools = urls.map((url) => new Pool(url.origin, { connections: perUrl, pipelining: 1 }));
  const lanes = pools.flatMap((pool) => Array.from({ length: perUrl }, () => pool));
  return {
    async run(durationMs, nextRequest, onAnswer) {
      const endsAt = performance.now() + durationMs;
      await Promise.all(
        lanes.map(async (pool) => {
          while (performance.now() < endsAt) {
            const request = nextRequest();
            onAnswer(request, await send(pool, request));
          }
        }),
      );
    },
    async stop() {
      await Promise.all(pools.map((pool) => pool.destroy()));
    },
  };
}

/** Uses `dispatch`, undici's lowest layer, to leave the Worker more of the machine's CPU time. */
function send(pool: Pool, { method, path, client }: OutgoingRequest): Promise<Answer> {
  return new Promise((resolve) => {
    const [sentAt, startedAt] = [Date.now(), performance.now()];
    let status = 0;
    let rateLimit: string | undefined;
    const end = (finalStatus: number) =>
      resolve({
        status: finalStatus,
        rateLimit,
        sentAt,
        answeredAt: Date.now(),
        durationMs: performance.now() - startedAt,
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
