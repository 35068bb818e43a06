import { inject } from "vitest";
import { upstashStore } from "../../../src/stores/upstash.ts";
import { storeSuite } from "../../suite/store-suite.ts";

const { restUrl: url, restToken: token } = inject("redis");

storeSuite("Upstash Redis, the edge's clock", () =>
  upstashStore({ url, token, clock: "edge", timeoutMs: 10_000 }),
);
