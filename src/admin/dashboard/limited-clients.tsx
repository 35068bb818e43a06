import type { LimitedClient } from "../../statistics/sums.ts";
import { Bar } from "./bar.tsx";
import { countText, exactTime } from "./format.ts";
import { ClientLink, RuleLink } from "./links.tsx";
import { type Column, Table } from "./table.tsx";
import { Time } from "./time.tsx";

interface LimitedClientsProps {
  readonly clients: readonly LimitedClient[];
  /** From when on the clients are counted; undefined if it is unknown. */
  readonly from: number | undefined;
  readonly now: number;
  /** Leaves out the column with the rule. */
  readonly ofOneRule?: boolean;
}

const CAPTION = "Most limited clients";
const CLIENT: Column = { label: "Client" };
const COUNTS: readonly Column[] = [{ label: "Limited", number: true }, { label: "Last" }];

/** The clients that were limited most often. Each links to the page on which an operator can act. */
export function LimitedClients({ clients, from, now, ofOneRule = false }: LimitedClientsProps) {
  const max = Math.max(1, ...clients.map(({ count }) => count));
  const columns = ofOneRule ? [CLIENT, ...COUNTS] : [CLIENT, { label: "Rule" }, ...COUNTS];
  return (
    <section class="card" id="limited-clients" data-live>
      <h2>{CAPTION}</h2>
      {from !== undefined && <p class="hint">Counted by the hour, since {exactTime(from)}.</p>}
      {clients.length === 0 ? (
        <p class="none">No client was limited in this time.</p>
      ) : (
        <Table caption={CAPTION} columns={columns}>
          {clients.map((each) => (
            <tr>
              <th scope="row">
                <ClientLink client={each.client} rule={each.rule} />
                {each.shadow && <span class="badge shadow">shadow</span>}
              </th>
              {!ofOneRule && (
                <td>
                  <RuleLink rule={each.rule} />
                </td>
              )}
              <td class="number">
                <Count {...each} />
                <Bar share={each.count / max} tone={each.shadow ? "shadow" : "limited"} />
              </td>
              <td class="nowrap">
                <Time at={each.lastAt} now={now} />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}

function Count({ count, error }: Pick<LimitedClient, "count" | "error">) {
  if (error === 0) return <>{countText(count)}</>;
  return (
    <>
      <small>{countText(count - error)} to </small>
      {countText(count)}
    </>
  );
}
