import { registerHooks } from "node:module";
import { DatabaseSync } from "node:sqlite";
import type { Demand } from "../../../src/engine/counter.ts";
import { decideGroup } from "../../../src/engine/fixed-window.ts";
import type { Random } from "../random.ts";

// The module of the object imports the runtime's module, which Node does not have.
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === "cloudflare:workers"
      ? { url: "data:text/javascript,export class DurableObject {}", shortCircuit: true }
      : next(specifier, context),
});
const { CounterTable } = await import("../../../src/stores/durable-object/counter-object.ts");

const MONTH_MS = 30 * 86_400_000;
/** The windows that are run. The rest of a busy client's month is like them. */
const MOST_WINDOWS = 5000;
const STARTS_AT = Date.UTC(2026, 0, 1);

/** SQLite writes a row of its schema and one of its index if the object creates the table. */
const ROWS_OF_TABLE = 2;

/** What an object does in a month besides the charges: it creates its table, removes old rows, and sets alarms. */
export interface Upkeep {
  readonly alarms: number;
  readonly rowsWritten: number;
}

/**
 * Runs the table of one client's object for a month, or for {@link MOST_WINDOWS}, with the first request of each window, which alone causes upkeep.
 *
 * @param perSecond the client's mean number of requests, at random times
 */
export async function upkeepOfMonth(
  counter: Demand,
  perSecond: number,
  random: Random,
): Promise<Upkeep> {
  let [rowsWritten, alarms] = [0, 0];
  let alarmAt = Number.POSITIVE_INFINITY;
  let database = new DatabaseSync(":memory:");
  const exec = (sql: string, ...bindings: (string | number)[]) => {
    const rows = database.prepare(sql).all(...bindings);
    if (sql.startsWith("CREATE")) rowsWritten += ROWS_OF_TABLE;
    if (sql.startsWith("DELETE")) {
      rowsWritten += Number(database.prepare("SELECT changes() AS rows").get()?.rows);
    }
    return { toArray: () => rows };
  };
  const storage = {
    sql: { exec },
    setAlarm(time: number) {
      alarmAt = time;
      rowsWritten += 1;
    },
    async deleteAll() {
      database.close();
      database = new DatabaseSync(":memory:");
    },
  };
  const table = new CounterTable(storage as never, undefined);
  const alarmsUntil = async (time: number) => {
    while (alarmAt <= time) {
      const now = alarmAt;
      alarmAt = Number.POSITIVE_INFINITY;
      alarms += 1;
      await table.clean(now);
    }
  };
  const end = STARTS_AT + MONTH_MS;
  let now = STARTS_AT + random.exponential(1000 / perSecond);
  for (let windows = 0; now < end && windows < MOST_WINDOWS; windows++) {
    await alarmsUntil(now);
    table.write(decideGroup([counter], now, (key) => table.read(key, now)).writes, now);
    const { windowMs } = counter;
    const next = STARTS_AT + (Math.floor((now - STARTS_AT) / windowMs) + 1) * windowMs;
    now = next + random.exponential(1000 / perSecond);
  }
  const until = Math.min(now, end);
  await alarmsUntil(until);
  const times = MONTH_MS / (until - STARTS_AT);
  return { alarms: alarms * times, rowsWritten: rowsWritten * times };
}
