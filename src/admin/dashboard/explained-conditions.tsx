import type { ExplainedCondition } from "../../explain/explanation.ts";
import { Table } from "./table.tsx";

const COLUMNS = [
  { label: "Condition" },
  { label: "The request has" },
  { label: "The rule demands" },
  { label: "Result" },
];

const RESULTS = { holds: "✓ holds", fails: "× fails", unknown: "? unknown" } as const;

interface ConditionTableProps {
  readonly rule: string;
  readonly conditions: readonly ExplainedCondition[];
}

/** The tested conditions of a rule, in their order. */
export function ConditionTable({ rule, conditions }: ConditionTableProps) {
  if (conditions.length === 0) return <p class="none">The rule applies to every request.</p>;
  return (
    <Table caption={`Conditions of ${rule}`} columns={COLUMNS} cards>
      {conditions.map(({ field, actual, expected, result, note }) => (
        <tr>
          <th scope="row">
            <code>
              <bdi>{field}</bdi>
            </code>
          </th>
          <td class="match" data-label="The request has">
            <bdi>{actual}</bdi>
          </td>
          <td class="match" data-label="The rule demands">
            <bdi>{expected}</bdi>
          </td>
          <td data-label="Result">
            <b>{RESULTS[result]}</b>
            {note !== undefined && (
              <p class="hint">
                <bdi>{note}</bdi>
              </p>
            )}
          </td>
        </tr>
      ))}
    </Table>
  );
}
