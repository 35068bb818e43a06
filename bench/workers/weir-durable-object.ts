import { defineConfig } from "../../src/config/index.ts";
import { CounterObject as Counters, weir } from "../../src/index.ts";
import { bindings } from "./bindings.ts";

/**
 * Weir on Durable Objects. The Worker counts what Cloudflare would bill: calls to objects, and rows
 * that the objects write. The objects run in this Worker's isolate, so the counts are plain variables.
 */
let calls = 0;
let rows = 0;
let cursors: SqlStorageCursor<Record<string, SqlStorageValue>>[] = [];

export class CounterObject extends Counters {
  constructor(ctx: DurableObjectState, env: unknown) {
    const { sql } = ctx.storage;
    const exec = sql.exec.bind(sql);
    sql.exec = (query: string, ...values: unknown[]) => {
      // The `rowsWritten` of a cursor is complete only after all its rows have been read, so the
      // cursors are kept until the counts are requested.
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

/** Returns a copy of a namespace that counts the calls to its objects. */
function countCalls(namespace: DurableObjectNamespace): DurableObjectNamespace {
  return new Proxy(namespace, {
    get(target, name) {
      const member = Reflect.get(target, name);
      if (name !== "getByName") return typeof member === "function" ? member.bind(target) : member;
      return (...args: Parameters<DurableObjectNamespace["getByName"]>) =>
        countCallsOfStub(target.getByName(...args));
    },
  });
}

function countCallsOfStub(stub: DurableObjectStub): DurableObjectStub {
  const methods = stub as unknown as Record<string, (...args: unknown[]) => unknown>;
  return new Proxy(stub, {
    get(_, name) {
      // This must be a direct call. A stub treats every property as a name on the remote object, so
      // `methods[name].apply(…)` would call a remote method named `apply`.
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
let bindingsOfWeir: Record<string, unknown> | undefined;

export default {
  fetch(request, env, ctx) {
    if (request.url.endsWith("/bench/counts")) return takeCounts();
    bindingsOfWeir ??= { ...env, COUNTERS: countCalls(env.COUNTERS) };
    return handler.fetch(request as Parameters<typeof handler.fetch>[0], bindingsOfWeir, ctx);
  },
} satisfies ExportedHandler<{ COUNTERS: DurableObjectNamespace }>;
