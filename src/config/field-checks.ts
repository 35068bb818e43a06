import * as v from "valibot";
import { faultText } from "./fault-text.ts";
import { isRecord, pathTo } from "./fields.ts";

/** The fields of an object that may have faults. */
export type Fields = Readonly<Record<string, unknown>>;

/** Reports a fault at a field of the checked object. */
export type Refuse = (message: string, ...path: readonly string[]) => void;

/** Returns a check that runs whether or not the object has other faults. */
export function checkOf<Output>(check: (fields: Fields, refuse: Refuse) => void) {
  return v.rawCheck<Output>(({ dataset, addIssue }) => {
    const fields: unknown = dataset.value;
    if (!isRecord(fields)) return;
    check(fields, (message, ...names) => {
      let at: unknown = fields;
      const path = names.map((name) => {
        const item = pathTo(isRecord(at) ? at : {}, name);
        at = item.value;
        return item;
      });
      addIssue({ path: path as [v.ObjectPathItem, ...v.ObjectPathItem[]], input: at, message });
    });
  });
}

/** Reports that each field in `names` must be removed if it is set. */
export function refuseGiven(
  fields: Fields,
  names: readonly string[],
  because: string,
  refuse: Refuse,
): void {
  for (const name of names) {
    if (fields[name] === undefined) continue;
    refuse(
      faultText(() => `remove ${name}: ${because}`),
      name,
    );
  }
}
