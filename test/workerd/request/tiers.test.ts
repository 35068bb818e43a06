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
    ["is its tier's", "header:plan", { plan: "pro" }, [50]],
    ["is all of its tier's", "header:plan", { plan: "max" }, [90, 900]],
    ["is the rule's without a tier", "header:plan", {}, [5]],
    ["is the rule's for a tier that is empty", "header:plan", { plan: "" }, [5]],
    ["is the rule's for a tier that there is not", "header:plan", { plan: "Pro" }, [5]],
    ["is the tier's that is called __proto__", "header:plan", { plan: "__proto__" }, [7]],
    ["is the rule's for what objects inherit", "header:plan", { plan: "constructor" }, [5]],
    ["is of the first that is present", "header:a | header:b", { b: "pro" }, [50]],
    ["is of the first, known or not", "header:a | header:b", { a: "x", b: "pro" }, [5]],
    ["is by address when that is asked for", "ip", {}, [70]],
    ["is never by the address that stands in", "header:plan", {}, [5]],
  ])("%s", async (_, by, sent, expected) => {
    const [subject] = await identifying([{ tiers: { by, limits } }])(sent);
    expect(subject?.windows.map(({ limit }) => limit)).toEqual(expected);
  });

  it("may come from a function, and changes nothing of who is counted", async () => {
    const keys = { plan: (request: Request) => request.headers.get("x-key") && "pro" };
    const rules = [{ tiers: { by: "custom:plan", limits } }, {}];
    const [tiered, plain] = await identifying(rules, {}, { keys })({ "x-key": "k" });
    expect(tiered?.windows).toMatchObject([{ policy: "r0", limit: 50, capacity: 80 }]);
    expect(tiered?.identity).toBe(plain?.identity);
  });
});
