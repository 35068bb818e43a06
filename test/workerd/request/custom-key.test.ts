import { describe, expect, it, vi } from "vitest";
import type { CustomKey, CustomKeys } from "../../../src/config/index.ts";
import { identifying, identifyingBy } from "./requests.ts";

const by = (key: string | string[], keys: CustomKeys) => identifyingBy(key, {}, { keys });

describe("a custom key", () => {
  it.each<[string, CustomKey]>([
    ["from a function", (request) => request.headers.get("tenant")],
    ["from an asynchronous function", async (request) => request.headers.get("tenant")],
  ])("is the result of its function: %s", async (_, tenant) => {
    const identity = by("custom:tenant", { tenant });
    expect(await identity({ tenant: "a" })).toBe(await identity({ tenant: "a" }));
    expect(await identity({ tenant: "a" })).not.toBe(await identity({ tenant: "b" }));
    const ip = { "cf-connecting-ip": "192.0.2.1" };
    expect(await identity({ tenant: "a", ...ip })).toBe(await identity({ tenant: "a" }));
  });

  it.each<[string, unknown]>([
    ["undefined", () => undefined],
    ["null", () => null],
    ["an empty text", () => ""],
    ["a number", () => 5],
    ["an object", () => ({ toString: () => "a" })],
    [
      "an exception",
      () => {
        throw new Error("no");
      },
    ],
    ["a rejection", () => Promise.reject(new Error("no"))],
  ])("is absent for %s, so the key is the next alternative or the address", async (_, tenant) => {
    const keys = { tenant } as CustomKeys;
    const sent = { "x-api-key": "k" };
    expect(await by("custom:tenant | header:x-api-key", keys)(sent)).toBe(
      await by("header:x-api-key", {})(sent),
    );
    expect(await by("custom:tenant", keys)(sent)).toBe(await by("ip", {})(sent));
  });

  it("is computed once for a request, even for several rules", async () => {
    const tenant = vi.fn(() => "a");
    const rules = [
      { key: "custom:tenant" },
      { key: ["custom:tenant", "path"] },
      { tiers: { by: "custom:tenant", limits: { a: { limit: 1, window: 1 } } } },
    ];
    const apply = identifying(rules, {}, { keys: { tenant } });
    expect(await apply()).toHaveLength(3);
    expect(tenant).toHaveBeenCalledTimes(1);
    await apply();
    expect(tenant).toHaveBeenCalledTimes(2);
  });
});

describe("one key in several rules", () => {
  it("identifies the same client in each rule, unless it reads parameters of the rules' paths", async () => {
    const rules = [
      { key: "param:id", match: { paths: ["/users/:id/*"] } },
      { key: "param:id", match: { paths: ["/users/:other/:id"] } },
      { key: "header:h" },
      { key: "header:h" },
    ];
    const appliedRules = await identifying(rules)({ h: "v" }, "https://api.example.com/users/1/2");
    const [user, item, one, other] = appliedRules.map(({ identity }) => identity);
    expect(user).not.toBe(item);
    expect(one).toBe(other);
  });
});
