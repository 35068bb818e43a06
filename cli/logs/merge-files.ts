import { LogError } from "./log-error.ts";
import type { LogFile, RequestGroup } from "./log-file.ts";
import type { LogCounts } from "./log-progress.ts";
import { plausibleTime } from "./plausible-time.ts";
import type { RequestForm } from "./request-form.ts";

/** Receives a request and the length of its line in bytes. */
export type OnRequest<Request> = (request: Request, bytes: number) => void;

/** A file that is being read, or that waits for its turn. */
interface Reading<Request> {
  readonly groups: AsyncGenerator<RequestGroup<Request>>;
  group: RequestGroup<Request>;
  index: number;
  /** The time of its next request. Before the next group is read, that of its last known request. */
  nextAt: number;
  isOpen: boolean;
}

/** Each open file needs about a megabyte. Systems allow at least 256 open files. */
const MAX_OPEN = 200;

const NO_REQUESTS: RequestGroup<never> = { requests: [], meanBytes: 0 };

/**
 * Reads files side by side, always the one whose next request is the earliest. So rotated files may be given in
 * any order, and requests are out of order by no more than within one file. A file is opened when the
 * time of its first request comes, so files that follow each other are not open at the same time. Sorting all
 * files by their first times would not do: the logs of several servers have the same times.
 *
 * Yields after each group of requests that was read, so that the caller can hand out requests.
 *
 * @param signal ends each file after the lines that have been read
 */
export async function* mergeFiles<Request>(
  files: readonly LogFile[],
  counts: LogCounts,
  form: RequestForm<Request>,
  onRequest: OnRequest<Request>,
  signal: AbortSignal | undefined,
): AsyncGenerator<void> {
  const readings = files.map(
    (file): Reading<Request> => ({
      groups: file.groups(counts, form, signal),
      group: NO_REQUESTS,
      index: 0,
      nextAt: file.firstAt,
      isOpen: false,
    }),
  );
  try {
    for (;;) {
      const [earliest, next] = twoEarliest(readings);
      if (!earliest) return;
      if (earliest.index === earliest.group.requests.length) {
        await readGroup(earliest, readings, form);
        yield;
      } else drain(earliest, next?.nextAt ?? Number.POSITIVE_INFINITY, form, onRequest);
    }
  } finally {
    for (const { groups } of readings) await groups.return(undefined);
    // A generator that has not begun does not close its file.
    for (const file of files) await file.close();
  }
}

function twoEarliest<Reading extends { readonly nextAt: number }>(
  readings: readonly Reading[],
): [Reading | undefined, Reading | undefined] {
  let [first, second]: (Reading | undefined)[] = [];
  for (const reading of readings) {
    if (!first || reading.nextAt < first.nextAt) [first, second] = [reading, first];
    else if (!second || reading.nextAt < second.nextAt) second = reading;
  }
  return [first, second];
}

/** Reads the next group of a file. Removes the file from the list if there is none. */
async function readGroup<Request>(
  reading: Reading<Request>,
  readings: Reading<Request>[],
  { timeOf }: RequestForm<Request>,
): Promise<void> {
  if (!reading.isOpen && readings.filter(({ isOpen }) => isOpen).length >= MAX_OPEN) {
    throw new LogError(
      `More than ${MAX_OPEN} files have requests of the same time. Replay fewer files at once.`,
    );
  }
  reading.isOpen = true;
  const { value, done } = await reading.groups.next();
  if (done) {
    readings.splice(readings.indexOf(reading), 1);
    return;
  }
  reading.group = value;
  reading.index = 0;
  if (value.requests.length > 0) reading.nextAt = plausibleTime(value.requests, 0, timeOf);
}

/** Hands out the requests of a file up to the time of the next request of another file. */
function drain<Request>(
  reading: Reading<Request>,
  until: number,
  { timeOf }: RequestForm<Request>,
  onRequest: OnRequest<Request>,
): void {
  const { requests, meanBytes } = reading.group;
  while (reading.index < requests.length) {
    const request = requests[reading.index] as Request;
    reading.nextAt = timeOf(request);
    if (reading.nextAt > until) {
      reading.nextAt = plausibleTime(requests, reading.index, timeOf);
      if (reading.nextAt > until) return;
    }
    onRequest(request, meanBytes);
    reading.index++;
  }
}
