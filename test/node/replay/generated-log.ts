/** A line of a log, with the facts from which it was written. */
export interface GeneratedLine {
  readonly at: number;
  readonly ip: string;
  readonly status: number;
  readonly text: string;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const AGENTS = ["Mozilla/5.0 (X11; Linux x86_64)", "curl/8.11.0", "ExampleBot/1.0"];
const BEGIN = Date.UTC(2026, 10, 22, 23, 30);

/** The same numbers from 0 to 1 in each run. */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Writes a time as Apache does. */
export function logTime(at: number): string {
  const [day, time = ""] = new Date(at).toISOString().split("T");
  const [year, month, date] = (day ?? "").split("-");
  return `${date}/${MONTHS[Number(month) - 1]}/${year}:${time.slice(0, 8)} +0000`;
}

/**
 * Returns the lines of a log in Combined Log Format. Some clients are busy. Lines are up to 59 seconds out of
 * order, because servers log a request when its response has ended.
 */
export function generateLog(lines: number, seed = 1): GeneratedLine[] {
  const random = randomNumbers(seed);
  return Array.from({ length: lines }, (_, index) => {
    const at = BEGIN + index * 400 - Math.floor(random() * 59) * 1000;
    const client = Math.floor(random() ** 3 * 60);
    const ip = `203.0.113.${client}`;
    const status = random() < 0.9 ? 200 : 404;
    const request = `GET /page/${index % 50}?session=${index} HTTP/1.1`;
    const agent = AGENTS[client % AGENTS.length];
    const text = `${ip} - - [${logTime(at)}] "${request}" ${status} 512 "-" "${agent}"`;
    return { at: Math.floor(at / 1000) * 1000, ip, status, text };
  });
}

/** The text of a log's file. */
export function logText(lines: readonly GeneratedLine[]): string {
  return lines.map(({ text }) => `${text}\n`).join("");
}
