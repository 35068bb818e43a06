import { describe, expect, it } from "vitest";
import type { LogRequest } from "../../../cli/logs/log-request.ts";
import { identityHash } from "../../../cli/replay/log-rules.ts";
import type { RuleInput } from "../../../src/config/index.ts";
import { encodeValues, hashValues } from "../../../src/request/identity.ts";
import { ALL, decide, engineOf, logged } from "./requests.ts";

type Fields = Partial<RuleInput>;

/** Returns the client of each request, and whether the rule denies it. */
async function clientsOf(fields: Fields, requests: readonly Partial<LogRequest>[]) {
  const rules = [{ name: "a", limit: 1, window: "1h", ...fields }] as RuleInput[];
  const decided = decide(
    engineOf({ rules }, ALL),
    requests.map((request, index) => logged(index, request)),
  );
  return decided.map(({ verdicts: [verdict] }) => verdict && [verdict.client, verdict.denied]);
}

const header = (name: string, value: string) => ({ headers: new Map([[name, value]]) });

describe("the client of a verdict", () => {
  it.each<[key: string, request: Partial<LogRequest>, shown: string | RegExp]>([
    ["ip", { ip: "203.0.113.9" }, "203.0.113.9"],
    ["ip", { ip: "2001:DB8:0:1::7" }, "2001:db8:0:1::/64"],
    ["ip", { ip: "::ffff:203.0.113.9" }, "203.0.113.9"],
    ["path", { target: "/A/../Login/?a=1" }, "/login"],
    ["method", { method: "HEAD" }, "GET"],
    ["host", { host: "API.Example.com." }, "api.example.com"],
    ["country", { cf: { country: "DE" } }, "DE"],
    ["asn", { cf: { asn: 64_496 } }, "64496"],
    ["header:user-agent", { headers: new Map([["user-agent", "Mozilla/5.0"]]) }, "Mozilla/5.0"],
    ["header:x-plan", header("x-plan", "pro"), "pro"],
    ["header:x-api-key", header("x-api-key", "secret-key-123"), /^sec…[\w-]{10}$/],
    ["header:authorization", header("authorization", "Bearer abcdefghijkl"), /^abc…[\w-]{10}$/],
    ["cookie:plan", header("cookie", "a=1; plan=abcdefgh"), /^ab…[\w-]{10}$/],
    ["query:token", { target: "/?token=abc" }, /^…[\w-]{10}$/],
  ])("is the value of the key %s as a report may show it: %j", async (key, request, shown) => {
    const [client] = await clientsOf({ key }, [request]);
    const text = client?.[0];
    if (typeof shown === "string") expect(text).toBe(shown);
    else expect(text).toMatch(shown);
  });

  it("is the zone of a Worker of another zone, whose Workers share one address", async () => {
    const ip = "2a06:98c0:3600::103";
    const zones = ["one.example.com", "two.example.com", undefined];
    const requests = zones.map((zone) => (zone ? { ip, ...header("cf-worker", zone) } : { ip }));
    const clients = await clientsOf({}, [...requests, ...requests]);
    const texts = ["worker:one.example.com", "worker:two.example.com", "worker:"];
    expect(clients).toEqual([
      ...texts.map((text) => [text, false]),
      ...texts.map((text) => [text, true]),
    ]);
  });

  it("has at most a few characters of a long value, and differs if the end differs", async () => {
    const targets = ["a", "b"].map((end) => ({ target: `/${"x".repeat(5000)}${end}` }));
    const clients = await clientsOf({ key: "path" }, [...targets, ...targets]);
    const texts = clients.map((client) => client?.[0] as string);
    expect(new Set(texts).size).toBe(2);
    for (const text of texts) expect(text.length).toBeLessThan(60);
    expect(clients.map((client) => client?.[1])).toEqual([false, false, true, true]);
  });

  it("is not that of a value that only looks the same", async () => {
    const values = ["1:a", "a", "2:ip11:203.0.113.7"];
    const requests = values.flatMap((value) => [header("x-plan", value), header("x-plan", value)]);
    const clients = await clientsOf({ key: "header:x-plan" }, requests);
    expect(clients.map((client) => client?.[1])).toEqual([false, true, false, true, false, true]);
  });

  it("is one for all addresses of an IPv6 network, in any order of rules", async () => {
    const ips = ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1", "2001:db8::3"];
    const clients = await clientsOf(
      {},
      ips.map((ip) => ({ ip })),
    );
    expect(clients.map((client) => client?.[1])).toEqual([false, true, false, true]);
  });
});

describe("the identity under a rule with spread windows", () => {
  it("is that of the Worker", async () => {
    for (const value of ["203.0.113.7", "ü", "x".repeat(300)]) {
      const values = [{ name: "ip", value }];
      expect(identityHash(encodeValues(values))).toBe(await hashValues(values));
    }
  });
});
