import type { ExplainedCounter } from "../../explain/explanation.ts";
import { countText, exactTime } from "./format.ts";
import { Table } from "./table.tsx";
import { ExactTime } from "./time.tsx";

const COLUMNS = [
  { label: "Policy" },
  { label: "Limit", number: true },
  { label: "Count", number: true },
  { label: "Window" },
  { label: "Stored under" },
];

interface CounterTableProps {
  readonly rule: string;
  readonly counters: readonly ExplainedCounter[];
  readonly now: number;
}

/** The counters of a client under a rule, and what the request would store. */
export function CounterTable({ rule, counters, now }: CounterTableProps) {
  return (
    <Table caption={`Counters of ${rule}`} columns={COLUMNS} cards>
      {counters.map((counter) => (
        <tr>
          <th scope="row">
            <bdi>{counter.policy}</bdi>
            {counter.shard !== undefined && <small> shard {counter.shard}</small>}
          </th>
          <td class="number" data-label="Limit">
            {countText(counter.capacity)}
            {counter.capacity !== counter.limit && (
              <small> ({countText(counter.limit)} in each window)</small>
            )}
          </td>
          <td class="number" data-label="Count">
            {countText(counter.count)}
            {counter.countAfter !== undefined && <> → {countText(counter.countAfter)}</>}
          </td>
          <td data-label="Window">
            {exactTime(counter.windowStart)} to <ExactTime at={counter.windowEnd} now={now} />
          </td>
          <td data-label="Stored under">
            <code class="key">
              <bdi>{counter.storedKey}</bdi>
            </code>
            {counter.expiresAt !== undefined && (
              <small> until {exactTime(counter.expiresAt)}</small>
            )}
          </td>
        </tr>
      ))}
    </Table>
  );
}
