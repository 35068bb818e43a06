import { Hono } from "hono";
import { describe, expect, it } from "vitest";
import { defineConfig } from "../../../src/config/index.ts";
import { weirAdmin } from "../../../src/entry/weir-admin.ts";
import { rateLimit } from "../../../src/index.ts";
import { TOKEN } from "./support.ts";

const config = defineConfig({
  store: "memory",
  rules: [{ name: "all", limit: 2, window: "1h", key: "ip" }],
});
const app = new Hono();
app.route("/", weirAdmin(config));
app.use(rateLimit(config));
app.all("*", async (c) => c.text(`app ${await c.req.text()}`));

function send(path: string, token: string, init: RequestInit = {}) {
  const headers = { authorization: `Bearer ${token}`, "cf-connecting-ip": crypto.randomUUID() };
  return app.request(path, { headers, ...init }, { WEIR_ADMIN_TOKEN: TOKEN });
}

describe("weirAdmin", () => {
  it("answers operators, and shares the counters of the middleware", async () => {
    const headers = { "cf-connecting-ip": "203.0.113.7" };
    await app.request("/", { headers }, { WEIR_ADMIN_TOKEN: TOKEN });
    const rules = await send("/_weir/api/rules", TOKEN);
    expect(await rules.json()).toMatchObject({ rules: [{ name: "all" }] });
    const peek = await app.request(
      "/_weir/api/peek",
      {
        method: "POST",
        headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
        body: JSON.stringify({ known: { ip: "203.0.113.7" } }),
      },
      { WEIR_ADMIN_TOKEN: TOKEN },
    );
    expect(await peek.json()).toMatchObject({ clients: [{ quotas: [{ remaining: 1 }] }] });
  });

  it("lets all other requests continue to the app, with their bodies", async () => {
    const response = await send("/_weir/api/peek", `${TOKEN}x`, { method: "POST", body: "hello" });
    expect(await response.text()).toBe("app hello");
    expect(response.headers.has("ratelimit")).toBe(true);
    expect(await (await app.request("/_weir/api/rules")).text()).toBe("app ");
  });

  // Without weirAdmin, the token opens only the doctor.
  it.each([
    ["weirAdmin", ["/%5fweir/api/rules", "//_weir/api/rules", "/_WEIR/"]],
    ["rateLimit", ["/%5fweir/api/rules", "/_weir/api/rules", "/_weir"]],
  ])("hides the token from the app: %s", async (name, targets) => {
    const other = new Hono();
    if (name === "weirAdmin") other.route("/", weirAdmin(config));
    else other.use(rateLimit({ store: "memory", rules: [] }));
    other.all("*", (c) => c.text(`app ${c.req.header("authorization") ?? "none"}`));
    for (const path of targets) {
      const headers = { authorization: `Bearer ${TOKEN}` };
      const response = await other.request(path, { headers }, { WEIR_ADMIN_TOKEN: TOKEN });
      expect([path, await response.text()]).toEqual([path, "app none"]);
    }
  });

  it("throws for a configuration with faults", () => {
    expect(() => weirAdmin({ rules: "none" } as never)).toThrow("rules");
  });
});
