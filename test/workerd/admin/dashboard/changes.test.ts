import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createDashboard, NOW } from "./dashboard.ts";

beforeEach(() => {
  vi.useFakeTimers({ now: NOW, toFake: ["Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const TARGET = { rule: "login", client: "a-client-of-the-tests0" };
const CLIENT = { ...TARGET, target: "client", expiresIn: "1h", reason: "a ticket" };
const RULE = { rule: "login", target: "rule", expiresIn: "8h", reason: "an incident", mode: "" };

describe("a change", () => {
  it("redirects to a page with a message", async () => {
    const dashboard = createDashboard();
    const response = await dashboard.post("/clients/reset", { ...TARGET, why: "a ticket" });
    expect(response.status).toBe(303);
    const location = response.headers.get("location") ?? "";
    expect(location).toBe("/_weir/clients?client=a-client-of-the-tests0&rule=login&done=reset");
    expect(await dashboard.text(location.slice("/_weir".length))).toContain(
      "counts and its ban are removed",
    );
  });

  it("has the operator's name and reason in the audit list", async () => {
    const dashboard = createDashboard({ actor: "access:ada@example.com" });
    await dashboard.post("/clients/lift-ban", { ...TARGET, why: "  ticket 7  " });
    const [entry] = await dashboard.fake.audit(1);
    expect(entry).toMatchObject({ by: "access:ada@example.com", why: "ticket 7" });
  });

  it.each(["/clients/reset", "/clients/lift-ban", "/overrides", "/overrides/remove"])(
    "is refused without a reason: %s",
    async (path) => {
      const dashboard = createDashboard();
      const response = await dashboard.post(path, { ...CLIENT, reason: " ", kind: "unlimited" });
      expect(response.status).toBe(400);
      expect(await response.text()).toContain("Nothing was changed");
      expect(dashboard.fake.entries).toEqual([]);
    },
  );

  it.each(["/clients/reset", "/clients/lift-ban", "/overrides", "/overrides/remove"])(
    "is refused for a read-only operator: %s",
    async (path) => {
      const dashboard = createDashboard({ role: "read" });
      const fields = { ...CLIENT, why: "a ticket", kind: "unlimited", confirmed: "yes" };
      expect((await dashboard.post(path, fields)).status).toBe(403);
      expect(dashboard.fake.entries).toEqual([]);
    },
  );

  it("that the control object cannot make answers with 503", async () => {
    const reset = async () => {
      throw new Error("no answer");
    };
    const dashboard = createDashboard({ operations: { reset } });
    const response = await dashboard.post("/clients/reset", { ...TARGET, why: "a ticket" });
    expect(response.status).toBe(503);
    const page = await response.text();
    expect(page).not.toContain("no answer");
    expect(page).not.toContain("Nothing was changed");
    expect(page).toContain("It is not known whether the change was made");
    expect(page).toContain('href="/_weir/audit"');
  });

  it.each([
    ["multipart/form-data", "x"],
    ["multipart/form-data; boundary=a", "x"],
    ["application/x-www-form-urlencoded; charset=foo", "client=x"],
  ])("in a form that cannot be read is answered with 400: %s", async (type, body) => {
    const init = { method: "POST", headers: { "content-type": type }, body };
    for (const path of ["/clients", "/clients/reset", "/overrides", "/overrides/remove"]) {
      const response = await createDashboard().request(path, init);
      expect([path, response.status]).toEqual([path, 400]);
      expect(await response.text()).toContain("The form cannot be read");
    }
  });
});

describe("an override of a client", () => {
  it.each([
    [
      { kind: "limits", "limit:login": "50" },
      { kind: "limits", limits: { login: 50 } },
    ],
    [
      { kind: "factor", factor: "2.5" },
      { kind: "factor", factor: 2.5 },
    ],
    [{ kind: "unlimited" }, { kind: "unlimited" }],
  ])("is set from the form: %o", async (fields, effect) => {
    const dashboard = createDashboard();
    const response = await dashboard.post("/overrides", { ...CLIENT, ...fields });
    expect(response.status).toBe(303);
    const [override] = await dashboard.fake.overrides();
    const expiresAt = NOW + 3_600_000;
    expect(override).toMatchObject({ ...TARGET, effect, reason: "a ticket", expiresAt });
  });

  it.each([
    [{ kind: "limits", "limit:login": "" }, "effect.limits"],
    [{ kind: "limits", "limit:login": "-1" }, "effect.limits.login"],
    [{ kind: "limits", "limit:other": "5" }, "the policies of the rule are login"],
    [{ kind: "factor", factor: "much" }, "effect.factor"],
    [{ kind: "factor", factor: "0x10" }, "effect.factor"],
    [{ kind: "factor", factor: "1e1" }, "effect.factor"],
    [{ kind: "" }, "effect"],
    [{ kind: "unlimited", expiresIn: "never" }, "expiresIn"],
    [{ kind: "unlimited", client: "203.0.113.77" }, "client must be an identity: 22 characters"],
    [{ kind: "unlimited", client: "" }, "client must be an identity"],
    [{ kind: "unlimited", client: "x".repeat(60_000) }, "client must be an identity"],
    [{ kind: "unlimited", rule: "unknown" }, "must be the name of a rule: login"],
  ])("names what is wrong in %o", async (fields, expected) => {
    const dashboard = createDashboard();
    const response = await dashboard.post("/overrides", { ...CLIENT, ...fields });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain(expected);
    expect(await dashboard.fake.overrides()).toEqual([]);
  });

  it("can be removed", async () => {
    const dashboard = createDashboard();
    await dashboard.post("/overrides", { ...CLIENT, kind: "unlimited" });
    const remove = { id: "login:a-client-of-the-tests0", why: "done" };
    const first = await dashboard.post("/overrides/remove", remove);
    const second = await dashboard.post("/overrides/remove", remove);
    expect(first.headers.get("location")).toBe("/_weir/overrides?done=removed");
    expect(second.headers.get("location")).toBe("/_weir/overrides?done=gone");
    expect(await dashboard.fake.overrides()).toEqual([]);
  });

  it("says so if there are too many", async () => {
    const setOverride = async () => ({ ok: false, fault: "full" }) as const;
    const dashboard = createDashboard({ operations: { setOverride } });
    const response = await dashboard.post("/overrides", { ...CLIENT, kind: "unlimited" });
    expect(await response.text()).toContain("There are 1000 overrides");
  });
});

describe("a dangerous override", () => {
  const cases = [
    { ...RULE, mode: "off" },
    { ...RULE, mode: "shadow" },
    { ...RULE, mode: "enforce" },
    { ...RULE, factor: "0.5" },
    { ...CLIENT, kind: "blocked" },
    { ...CLIENT, kind: "factor", factor: "0" },
    { ...CLIENT, kind: "limits", "limit:login": "0" },
  ];

  it.each(cases)("is set only after a confirmation: %o", async (fields) => {
    const dashboard = createDashboard();
    const response = await dashboard.post("/overrides", fields);
    expect(response.status).toBe(200);
    const page = await response.text();
    expect(page).toContain("Is this what you want?");
    expect(await dashboard.fake.overrides()).toEqual([]);

    const sent = Object.fromEntries(
      [...page.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)].map(
        ([, name = "", value = ""]) => [name, value],
      ),
    );
    expect(sent).toMatchObject({ ...fields, csrf: "the-csrf-token" });
    expect((await dashboard.post("/overrides", sent)).status).toBe(303);
    expect(await dashboard.fake.overrides()).toHaveLength(1);
  });

  it("needs no confirmation if it only raises limits", async () => {
    const dashboard = createDashboard();
    const response = await dashboard.post("/overrides", { ...RULE, factor: "2" });
    expect(response.status).toBe(303);
  });
});

describe("the look-up of a client", () => {
  it("passes the known values on, and shows no value", async () => {
    const peek = vi.fn(async () => []);
    const dashboard = createDashboard({ operations: { peek } });
    const response = await dashboard.post("/clients", {
      by0: "header:x-api-key",
      value0: "a-secret-key",
      by1: "ip",
      value1: "203.0.113.7",
      value2: "",
    });
    const known = { "header:x-api-key": "a-secret-key", ip: "203.0.113.7" };
    expect(peek).toHaveBeenCalledWith({ known }, undefined);
    expect(await response.text()).not.toMatch(/a-secret-key|203\.0\.113\.7(?!")/);
  });

  it("offers the alternatives in the keys of all rules", async () => {
    const page = await createDashboard().text("/clients");
    const options = [...page.matchAll(/<option value="([^"]*)"/g)].map(([, value]) => value);
    expect([...new Set(options)]).toEqual([
      "ip",
      "header:x-api-key",
      "jwt:sub",
      "path",
      "identity",
    ]);
  });

  it("asks for a value if there is none", async () => {
    const response = await createDashboard().post("/clients", { by0: "ip", value0: " " });
    expect(await response.text()).toContain("Enter a value");
  });

  it("needs two clicks from the list of limited clients to a change", async () => {
    const dashboard = createDashboard();
    const [, path = ""] =
      /<a href="\/_weir(\/clients\?client=[^"]+)"/.exec(await dashboard.text("/")) ?? [];
    const page = await dashboard.text(path.replaceAll("&amp;", "&"));
    for (const action of ["/overrides", "/clients/reset", "/clients/lift-ban"]) {
      expect(page).toContain(`action="/_weir${action}"`);
    }
  });
});
