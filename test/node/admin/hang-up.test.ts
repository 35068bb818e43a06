import { afterEach, expect, it, vi } from "vitest";
import { defineConfig } from "../../../src/config/define.ts";

const background = vi.hoisted(() => [] as Promise<unknown>[]);
vi.mock("cloudflare:workers", () => ({
  waitUntil: (task: Promise<unknown>) => background.push(task),
  DurableObject: class {},
  WorkerEntrypoint: class {},
}));

// The types of Workers are not known here, so the compiler must not follow this import.
const path = "../../../src/entry/prepare-admin.ts";
const { prepareAdmin } = (await import(path)) as {
  prepareAdmin: (
    ...args: readonly unknown[]
  ) => (request: Request, operator: object) => Promise<Response>;
};

afterEach(() => void background.splice(0));

const config = defineConfig({ rules: [{ name: "all", limit: 2, window: "1h" }], store: "memory" });
const operator = { actor: "token", role: "admin", csrf: "" } as const;

it("a change runs to its end although the client hangs up", async () => {
  const steps: string[] = [];
  const { promise: recorded, resolve } = Promise.withResolvers<void>();
  const control = {
    overrides: async () => [],
    addAuditEntry: async ({ action }: { action: string }) => {
      await recorded;
      steps.push(action);
    },
  };
  const env = { WEIR_CONTROL: { getByName: () => control } };
  const handle = prepareAdmin(config, env, {});
  const request = new Request("https://api.example.com/_weir/api/reset", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ known: { ip: "203.0.113.7" }, rule: "all", why: "x" }),
  });
  // The caller does not wait: the runtime keeps only what `waitUntil` got.
  void handle(request, operator);
  expect(background).toHaveLength(1);
  resolve();
  const response = (await background[0]) as Response;
  expect(response.status).toBe(200);
  expect(steps).toEqual(["reset"]);
});

it("a request that reads needs not run to its end", async () => {
  const handle = prepareAdmin(config, {}, {});
  await handle(new Request("https://api.example.com/_weir/api/rules"), operator);
  expect(background).toEqual([]);
});
