import { sign } from "hono/jwt";
import { describe, expect, it } from "vitest";
import { identifying, type Sent } from "./requests.ts";

const limits = JSON.parse(`{
  "pro": { "limit": 50, "window": "1m", "capacity": 80 },
  "max": { "limits": [{ "limit": 90, "window": "1m" }, { "limit": 900, "window": "1h" }] },
  "__proto__": { "limit": 7, "window": "1m" },
  "203.0.113.7": { "limit": 70, "window": "1m" }
}`);

describe("a client's quota", () => {
  it.each<[string, string, Sent, number[]]>([
    ["is the quota of its tier", "header:plan", { plan: "pro" }, [50]],
    ["is every quota of its tier", "header:plan", { plan: "max" }, [90, 900]],
    ["is the rule's quota without a tier", "header:plan", {}, [5]],
    ["is the rule's quota for an empty tier", "header:plan", { plan: "" }, [5]],
    ["is the rule's quota for an undefined tier", "header:plan", { plan: "Pro" }, [5]],
    ["is the quota of a tier named __proto__", "header:plan", { plan: "__proto__" }, [7]],
    ["is the rule's quota for an inherited property", "header:plan", { plan: "constructor" }, [5]],
    ["is that of the first alternative that is present", "header:a | header:b", { b: "pro" }, [50]],
    [
      "is that of the first alternative, even with an undefined tier",
      "header:a | header:b",
      { a: "x", b: "pro" },
      [5],
    ],
    ["is chosen by the address if the rule says so", "ip", {}, [70]],
    ["is never chosen by the address that replaces a missing key", "header:plan", {}, [5]],
  ])("%s", async (_, by, sent, expected) => {
    const [appliedRule] = await identifying([{ tiers: { by, limits } }])(sent);
    expect(appliedRule?.windows.map(({ limit }) => limit)).toEqual(expected);
  });

  it("may come from a function, and does not change the identity", async () => {
    const keys = { plan: (request: Request) => request.headers.get("x-key") && "pro" };
    const rules = [{ tiers: { by: "custom:plan", limits } }, {}];
    const [tiered, untiered] = await identifying(rules, {}, { keys })({ "x-key": "k" });
    expect(tiered?.windows).toMatchObject([{ policy: "r0", limit: 50, capacity: 80 }]);
    expect(tiered?.identity).toBe(untiered?.identity);
  });

  it.each<[string, string, object, number[]]>([
    ["a nested claim", "jwt:/app/plan", { app: { plan: "pro" } }, [50]],
    ["a list that contains its name", "jwt:roles", { roles: ["user", "pro"] }, [50]],
    ["a nested list", "jwt:/app/roles", { app: { roles: ["pro"] } }, [50]],
    ["an element of a list", "jwt:/roles/1", { roles: ["max", "pro"] }, [50]],
    ["a list with a number", "jwt:roles", { roles: [7] }, [77]],
    [
      "a list with several names, of which the first tier counts",
      "jwt:roles",
      { roles: ["max", "pro"] },
      [50],
    ],
    ["a list with the name __proto__", "jwt:roles", { roles: ["__proto__"] }, [7]],
    ["a list with none of its names", "jwt:roles | header:plan", { roles: ["user"] }, [5]],
    ["an empty list and the next alternative", "jwt:roles | header:plan", { roles: [] }, [90, 900]],
    [
      "a list without texts and the next alternative",
      "jwt:roles | header:plan",
      { roles: [null, {}, ["pro"], "", 1.5, true] },
      [90, 900],
    ],
    ["an object", "jwt:roles", { roles: { pro: true } }, [5]],
    ["a list of inherited names", "jwt:roles", { roles: ["constructor", "toString"] }, [5]],
  ])("is that of %s", async (_, by, claims, expected) => {
    const secret = "a secret of 32 bytes or of more!";
    const token = await sign({ ...claims }, secret, "HS256");
    const options = { jwt: { secret: "JWT_SECRET" } };
    const all = { ...limits, 7: { limit: 77, window: "1m" } };
    const apply = identifying([{ tiers: { by, limits: all } }], options, {
      env: { JWT_SECRET: secret },
    });
    const [appliedRule] = await apply({ authorization: `Bearer ${token}`, plan: "max" });
    expect(appliedRule?.windows.map(({ limit }) => limit)).toEqual(expected);
  });
});
