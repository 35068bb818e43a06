import { parseIsoTime } from "../../src/config/iso-time.ts";
import type { Explanation } from "../../src/explain/explanation.ts";
import { AdminError, EXIT, wrongOptions } from "../admin/admin-error.ts";
import { describeRequest, type RequestOptions } from "./describe-request.ts";
import { explanationText } from "./explanation-text.ts";
import { hintsFor } from "./hints.ts";
import { explainLive } from "./live-explanation.ts";
import { explainLocally, hostFor, type LocalOptions, readConfig } from "./local-explanation.ts";
import type { DefaultHost } from "./request-url.ts";

/** The options of the command `explain`. */
export interface ExplainOptions extends RequestOptions, LocalOptions {
  readonly atTime?: string;
  readonly against?: string;
  readonly verbose?: true;
}

/** An explanation, and all that its reader must know about it. */
interface Explained {
  readonly explanation: Explanation;
  readonly notes: readonly string[];
  readonly now: number;
}

/**
 * Explains a request, and prints the explanation.
 *
 * @returns the exit code: 0 whatever the verdict is, 1 for wrong input, 2 if there is no explanation
 */
export async function runExplain(options: ExplainOptions): Promise<number> {
  try {
    const { explanation, notes, now } = await explained(options);
    console.log(
      options.json
        ? JSON.stringify({ ...explanation, notes }, null, 2)
        : printed(explanation, { isVerbose: options.verbose === true, now, notes }, options),
    );
    return EXIT.done;
  } catch (error) {
    if (!(error instanceof AdminError)) throw error;
    if (options.json) console.log(JSON.stringify({ ok: false, error: error.message }, null, 2));
    else console.error(error.message);
    return error.exitCode;
  }
}

async function explained(options: ExplainOptions): Promise<Explained> {
  const { against } = options;
  const now = timeOf(options);
  if (against !== undefined) {
    const { request, notes } = await describeRequest(options, async () => hostOf(against));
    const { env, wrangler } = options;
    const live = await explainLive(request, {
      at: against,
      ...(env !== undefined && { env }),
      ...(wrangler !== undefined && { wrangler }),
    });
    return { ...live, now, notes: [...live.notes, ...notes, ...hintsFor(live.explanation)] };
  }
  const config = readConfig(options);
  // The request is checked first; without a listener, a rejection in the meantime would end the process.
  config.catch(() => {});
  const { request, notes } = await describeRequest(options, async () => hostFor(await config));
  const local = await explainLocally(request, await config, options, now);
  return { ...local, now, notes: [...notes, ...local.notes, ...hintsFor(local.explanation)] };
}

function timeOf({ atTime, against }: ExplainOptions): number {
  if (atTime === undefined) return Date.now();
  if (against !== undefined) {
    throw wrongOptions("--at-time works only without --against: a Worker uses its own clock.");
  }
  const form = /^\d{4}-\d\d-\d\dT[\d:.]{5,12}(?:Z|[+-]\d\d:\d\d)$/i;
  const time = form.test(atTime) ? parseIsoTime(atTime) : Number.NaN;
  if (Number.isNaN(time)) {
    throw wrongOptions("--at-time must be a time with its zone, such as 2026-12-01T08:00:00Z.");
  }
  return time;
}

/** A path without a host belongs to the Worker that explains it. */
function hostOf(against: string): DefaultHost {
  const url = URL.parse(against);
  if (!url?.hostname) throw wrongOptions("The path has no host. Write the whole URL, or --host.");
  const { hostname: host } = url;
  return { host, note: `The path has no host, so that of --against was taken: ${host}.` };
}

function printed(
  explanation: Explanation,
  options: Parameters<typeof explanationText>[1],
  { against }: ExplainOptions,
): string {
  try {
    return explanationText(explanation, options);
  } catch (error) {
    // A field that is missing in an answer appears as this error when the answer is printed.
    if (!(error instanceof TypeError || error instanceof RangeError) || against === undefined) {
      throw error;
    }
    throw new AdminError(
      EXIT.unavailable,
      "The answer has another form than expected. Compare the version of edge-weir in this project with that of the deployed Worker.",
    );
  }
}
