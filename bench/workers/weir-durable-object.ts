import { defineConfig } from "../../src/config/index.ts";
import { CounterObject as Counters, weir } from "../../src/index.ts";
import { bindings } from "./bindings.ts";

/**
 * Weir on Durable Objects, with a count of what Cloudflare would bill: calls of objects, and rows
 * that they write. The objects live in this Worker's isolate, so plain variables will do.
 */
let calls = 0;
let rows = 0;
let cursors: SqlStorageCursor<Record<string, SqlStorageValue>>[] = [];

export class CounterObject extends Counters {
  constructor(ctx: DurableObjectState, env: unknown) {
    const { sql } = ctx.storage;
    const exec = sql.exec.bind(sql);
    sql.exec = (query: string, ...values: unknown[]) => {
      // A cursor knows what it has written only when it has been read to its end.
      const cursor = exec(query, ...values);
      cursors.push(cursor);
      return cursor as never;
    };
    const setAlarm = ctx.storage.setAlarm.bind(ctx.storage);
    ctx.storage.setAlarm = (...values) => {
      rows += 1;
      return setAlarm(...values);
    };
    super(ctx, env);
  }
}

/** A namespace whose objects count the calls of their methods. */
function counted(namespace: DurableObjectNamespace): DurableObjectNamespace {
  return new Proxy(namespace, {
    get(target, name) {
      const member = Reflect.get(target, name);
      if (name !== "getByName") return typeof member === "function" ? member.bind(target) : member;
      return (...args: Parameters<DurableObjectNamespace["getByName"]>) =>
        countedStub(target.getByName(...args));
    },
  });
}

function countedStub(stub: DurableObjectStub): DurableObjectStub {
  const methods = stub as unknown as Record<string, (...args: unknown[]) => unknown>;
  return new Proxy(stub, {
    get(_, name) {
      // Called in one expression: to a stub, `apply` would be a name on the object's side.
      return (...args: unknown[]) => {
        calls += 1;
        return methods[name as string]?.(...args);
      };
    },
  });
}

function takeCounts(): Response {
  for (const { rowsWritten } of cursors) rows += rowsWritten;
  const counts = { calls, rows };
  calls = 0;
  rows = 0;
  cursors = [];
  return Response.json(counts);
}

const handler = weir(defineConfig(JSON.parse(bindings.CONFIG)));
let settings: Record<string, unknown> | undefined;

export default {
  fetch(request, env, ctx) {
    if (request.url.endsWith("/bench/counts")) return takeCounts();
    settings ??= { ...env, COUNTERS: counted(env.COUNTERS) };
    return handler.fetch(request as Parameters<typeof handler.fetch>[0], settings, ctx);
  },
} satisfies ExportedHandler<{ COUNTERS: DurableObjectNamespace }>;
