import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";

const ROOT = join(import.meta.dirname, "..");

/** The place of one run of `npm run dev` among the runs in the same folder. */
export interface Registration {
  /** Another run that uses the folder's state; undefined if this run may use it. */
  readonly other?: {
    readonly url: string;
    /** The path of the state for this run. It is deleted when this run stops. */
    readonly ownState: string;
  };
  stop(): Promise<void>;
}

/**
 * Registers a run of `npm run dev`. Two runs with one state would add up their statistics, and the database of a Durable
 * Object would sometimes be locked. So only one run at a time uses the folder's state.
 *
 * @param url the URL at which this run listens until it ends
 * @param folder the folder of the project @default this repository
 */
export async function register(url: string, folder: string = ROOT): Promise<Registration> {
  const file = join(folder, ".wrangler/dev-url");
  mkdirSync(dirname(file), { recursive: true });
  const other = urlIn(file);
  if (other !== undefined && other !== url) {
    if (await listens(new URL(other))) return beside(other, url, folder);
    // That run has been killed.
    rmSync(file, { force: true });
  }
  try {
    writeFileSync(file, url, { flag: other === url ? "w" : "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    // Another run has started at the same time.
    return beside(urlIn(file) ?? "another port", url, folder);
  }
  return { stop: async () => rmSync(file, { force: true }) };
}

function beside(other: string, url: string, folder: string): Registration {
  const ownState = join(folder, `.wrangler/state-${new URL(url).port}`);
  // An earlier run on this port may have been killed.
  rmSync(ownState, { recursive: true, force: true });
  return {
    other: { url: other, ownState },
    stop: async () => rmSync(ownState, { recursive: true, force: true }),
  };
}

function urlIn(file: string): string | undefined {
  try {
    const text = readFileSync(file, "utf8");
    return URL.canParse(text) ? text : undefined;
  } catch {
    return undefined;
  }
}

function listens({ hostname, port }: URL): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    socket.on("connect", () => resolve(true)).on("error", () => resolve(false));
    socket.on("connect", () => socket.destroy());
  });
}
