import { evictDurableObject, reset, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { OverrideChange } from "../../../src/control/protocol.ts";
import { MAX_OVERRIDES } from "../../../src/overrides/override.ts";
import { uploadOf } from "./uploads.ts";

afterEach(async () => {
  vi.useRealTimers();
  await reset();
});

const NOW = Date.now();
const globalObject = () => env.WEIR_CONTROL.getByName("global");

/** An identity that begins with a text. */
function idOf(text: string): string {
  return text.padEnd(22, "_");
}

function change(client: string, expiresAt = NOW + 3_600_000): OverrideChange {
  return {
    rule: "search",
    client: idOf(client),
    effect: { kind: "blocked" },
    expiresAt,
    reason: "abuse",
  };
}

/** Returns the update for an isolate with this version of the overrides. */
async function updateSince(overridesVersion: number) {
  const answer = await globalObject().upload(uploadOf(1, { overridesVersion }));
  return answer.overrides;
}

describe("overrides", () => {
  it("reach isolates that have another version", async () => {
    const object = globalObject();
    await object.setOverride(change("one"), "token");
    const first = await updateSince(0);
    expect(first).toMatchObject({ all: [{ client: idOf("one"), by: "token" }] });
    const version = first?.version ?? 0;
    expect(await updateSince(version)).toBeUndefined();

    await object.setOverride(change("two"), "token");
    await object.removeOverride(`search:${idOf("one")}`, "token", "done");
    expect(await updateSince(version)).toMatchObject({ all: [{ client: idOf("two") }] });
  });

  it("reach isolates again after the object was evicted", async () => {
    const object = globalObject();
    await object.setOverride(change("one"), "token");
    const { version = 0 } = (await updateSince(0)) ?? {};
    vi.setSystemTime(NOW + 60_000);
    await evictDurableObject(object);
    const update = await updateSince(version);
    expect(update).toMatchObject({ all: [{ client: idOf("one") }] });
    expect(update?.version).toBeGreaterThan(version);
  });

  it("of a version that kept removed ones as rows without a value still hold", async () => {
    const object = globalObject();
    await object.setOverride(change("one"), "token");
    await runInDurableObject(object, (_, { storage: { sql } }) => {
      sql.exec("ALTER TABLE overrides RENAME TO current");
      sql.exec(
        "CREATE TABLE overrides (id TEXT PRIMARY KEY, version INTEGER NOT NULL, value TEXT)",
      );
      sql.exec("INSERT INTO overrides SELECT * FROM current");
      sql.exec("INSERT INTO overrides VALUES ('search:removed', 1, NULL)");
    });
    await evictDurableObject(object);
    expect(await object.overrides()).toMatchObject([{ client: idOf("one") }]);
  });

  it("end by themselves", async () => {
    const object = globalObject();
    await object.setOverride(change("short", NOW + 60_000), "token");
    await object.setOverride(change("long"), "token");
    vi.setSystemTime(NOW + 60_000);
    expect((await object.overrides()).map(({ client }) => client)).toEqual([idOf("long")]);
    expect((await object.totals()).overrides).toBe(1);
    expect((await updateSince(0))?.all).toHaveLength(1);
  });

  it("that have ended replace a longer one that an isolate still has", async () => {
    const object = globalObject();
    await object.setOverride(change("one"), "token");
    const { version = 0 } = (await updateSince(0)) ?? {};
    await object.setOverride(change("one", NOW + 1000), "token");
    vi.setSystemTime(NOW + 1000);
    expect(await updateSince(version)).toMatchObject({ all: [] });
    await evictDurableObject(object);
    expect(await updateSince(version)).toMatchObject({ all: [] });
  });

  it("are at most 1,000; replacing one is still possible", async () => {
    const results = await runInDurableObject(globalObject(), async (object) => {
      for (let i = 0; i < MAX_OVERRIDES; i++) await object.setOverride(change(`${i}`), "token");
      return [
        await object.setOverride(change("more"), "token"),
        await object.setOverride(change("7"), "token"),
        await object.removeOverride(`search:${idOf("8")}`, "token", ""),
        await object.setOverride(change("more"), "token"),
      ];
    });
    expect(results).toMatchObject([
      { ok: false, fault: "full" },
      { ok: true },
      { client: idOf("8") },
      { ok: true },
    ]);
  });
});

describe("the object stores no client but identities:", () => {
  it.each(["203.0.113.7", "", "x".repeat(60_000), `${"a".repeat(21)}:`])(
    "%.30s",
    async (client) => {
      await runInDurableObject(globalObject(), async (object) => {
        const refused = "client must be an identity: 22 characters";
        const set = object.setOverride({ ...change("one"), client } as OverrideChange, "token");
        await expect(set).rejects.toThrow(refused);
        const entry = { by: "token", action: "reset", rule: "search", client } as const;
        await expect(object.addAuditEntry(entry)).rejects.toThrow(refused);
        expect([await object.overrides(), await object.audit(1)]).toEqual([[], []]);
      });
    },
  );
});

describe("the audit list", () => {
  it("has each change with the state before and after, the newest first", async () => {
    const object = globalObject();
    await object.setOverride(change("one"), "access:a@example.com");
    await object.setOverride({ ...change("one"), reason: "longer" }, "token");
    await object.removeOverride(`search:${idOf("one")}`, "token", "solved");
    await object.removeOverride(`search:${idOf("one")}`, "token", "again");
    await object.addAuditEntry({
      by: "token",
      action: "reset",
      rule: "search",
      client: idOf("one"),
    });
    const entries = await object.audit(10);
    expect(entries).toMatchObject([
      { id: 4, action: "reset" },
      { id: 3, action: "remove-override", before: { reason: "longer" }, why: "solved" },
      { id: 2, before: { reason: "abuse" }, after: { reason: "longer", by: "token" } },
      { id: 1, by: "access:a@example.com", action: "override", why: "abuse" },
    ]);
    expect(await object.audit(1, 3)).toMatchObject([{ id: 2 }]);
  });
});
