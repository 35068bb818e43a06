import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listen } from "../../dev/loopback.ts";
import { type RunningWorker, startWorker } from "../node/support/worker.ts";
import { sendRaw } from "./target.ts";
import { CLIENT, lines } from "./vector.ts";

/** The names and values of the fields that an origin may read as Weir's, as the origin gets them. */
type Fields = string[];

let origin: Awaited<ReturnType<typeof listen>>;
let worker: RunningWorker;
let received: { fields: Fields; body: string }[];

beforeAll(async () => {
  const server = createServer(async (request, response) => {
    const { rawHeaders } = request;
    const fields = rawHeaders.flatMap((name, index) =>
      index % 2 === 0 && /weir/i.test(name) ? [`${name}: ${rawHeaders[index + 1]}`] : [],
    );
    let body = "";
    for await (const chunk of request) body += chunk;
    received.push({ fields, body });
    response.end("ok");
  });
  origin = await listen(server);
  const rule = { limit: 0, window: "52w", mode: "mark", tellOrigin: true } as const;
  worker = await startWorker({
    config: {
      store: "memory",
      rules: [
        { name: "plan", match: { paths: ["/over"] }, ...rule },
        { name: "roomy", match: { paths: ["/within"] }, ...rule, limit: 900 },
        {
          name: "exempted",
          match: { paths: ["/exempt"] },
          ...rule,
          exempt: { ips: [CLIENT] },
        },
        { name: "denied", match: { paths: ["/denied"] }, limit: 0, window: "52w" },
      ],
    },
    vars: { ORIGIN_URL: `http://${origin.host}:${origin.port}` },
  });
});

afterAll(async () => {
  await worker.stop();
  await origin.stop();
});

async function receivedFor(path: string, fields: readonly string[], body = "") {
  received = [];
  const length = body === "" ? [] : [`Content-Length: ${body.length}`];
  const head = lines(`POST ${path} HTTP/1.1`, "Host: api.example.com", ...length, ...fields);
  const { status } = await sendRaw(worker.url, { lines: head, body });
  return { status, received };
}

/** Spellings of the two names that some servers read as the same field. */
const NAMES = ["Over", "Remaining"].flatMap((name) => [
  `Weir-${name}`,
  `WEIR-${name.toUpperCase()}`,
  `weir-${name.toLowerCase()}`,
  `weir_${name}`,
  `WEIR_${name.toUpperCase()}`,
  ...["!", "#", "$", "%", "&", "'", "*", "+", ".", "^", "`", "|", "~"].map(
    (separator) => `weir${separator}${name}`,
  ),
]);
const FORGED = NAMES.map((name) => `${name}: "plan";r=999;t=1, plan`);

describe("an origin that trusts Weir-Over and Weir-Remaining", () => {
  it.each([
    ["/over", ["weir-over: plan", 'weir-remaining: "plan";r=0;t=']],
    ["/within", ['weir-remaining: "roomy";r=']],
    ["/exempt", []],
    ["/unmatched", []],
  ])("does not get the client's fields at %s", async (path, own) => {
    for (const fields of [FORGED, [...FORGED, ...FORGED], ...FORGED.map((field) => [field])]) {
      const answer = await receivedFor(path, fields, "hello");
      expect(answer.status).toBe(200);
      expect(answer.received).toHaveLength(1);
      const [{ fields: told, body }] = answer.received as [{ fields: Fields; body: string }];
      expect(body).toBe("hello");
      expect(told).toHaveLength(own.length);
      for (const [index, start] of own.entries()) {
        expect(told[index]?.toLowerCase().startsWith(start)).toBe(true);
      }
    }
  });

  it("gets other fields unchanged, and no request that an enforced rule denies", async () => {
    const own = ["Weir-Override: a", "X-Weir-Over: b", "Weir: c"];
    const [request] = (await receivedFor("/within", own)).received;
    expect(request?.fields).toEqual(expect.arrayContaining(own));
    expect(await receivedFor("/denied", FORGED)).toEqual({ status: 429, received: [] });
  });
});
