import { startRedis } from "../../../dev/redis.ts";
import { startUpstashRest } from "../../../dev/upstash-rest.ts";
import type { Demand } from "../../../src/engine/counter.ts";
import { type Entry, NOTHING } from "../../../src/stores/batch.ts";
import { createUpstashEntries } from "../../../src/stores/upstash/upstash-store.ts";

/** The bytes of the bodies of requests and responses. */
export interface CallBytes {
  /** Of a call with one decision about one counter. */
  readonly first: number;
  /** Of each further decision in the call. */
  readonly further: number;
}

/** Measures calls to Redis behind the REST server of the tests. */
export async function measureCallBytes(counterOf: (client: number) => Demand): Promise<CallBytes> {
  const redis = await startRedis();
  const rest = await startUpstashRest({ redis });
  const { fetch } = globalThis;
  let bytes = 0;
  globalThis.fetch = async (input, init) => {
    const response = await fetch(input, init);
    const text = await response.clone().text();
    bytes += Buffer.byteLength(String(init?.body ?? "")) + Buffer.byteLength(text);
    return response;
  };
  try {
    const { url, token } = rest;
    const store = createUpstashEntries({ url, token, clock: "edge", timeoutMs: 10_000 });
    const callOf = async (clients: number) => {
      bytes = 0;
      const entries = Array.from(
        { length: clients },
        (_, client): Entry => ({ ...NOTHING, now: Date.now(), group: [counterOf(client)] }),
      );
      const [first, ...others] = entries;
      await store.call([first as Entry, ...others]);
      return bytes;
    };
    // The first call loads the script.
    await callOf(1);
    const [one, eleven] = [await callOf(1), await callOf(11)];
    return { first: one, further: (eleven - one) / 10 };
  } finally {
    globalThis.fetch = fetch;
    await rest.stop();
    await redis.stop();
  }
}
