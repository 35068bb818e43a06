/**
 * The maximum length of one event, in UTF-16 code units. Longer events are skipped, because the
 * memory of an isolate is limited. Only the events of generated images and of very long answers can
 * be nearly as long.
 */
export const MAX_EVENT_LENGTH = 2 * 1024 * 1024;

/** Parses a stream of server-sent events. The text of the stream arrives in pieces of any length. */
export interface EventStreamParser {
  /** @param text the next piece of the stream, decoded from UTF-8 and without a byte order mark */
  push(text: string): void;
  /**
   * Ends the stream. If the blank line after the last event is missing, the event still counts.
   * Browsers ignore such an event, but some servers omit the line.
   */
  end(): void;
}

/**
 * Creates a parser of server-sent events, as the HTML standard defines them. It ignores all fields
 * except `data`. The time is linear in the length of the stream, even if every piece is a single
 * character, because no text is searched twice.
 *
 * @param onData gets the data of each event
 */
export function createEventStreamParser(onData: (data: string) => void): EventStreamParser {
  // The pieces of the current line, and the data lines of the current event.
  let line: string[] = [];
  let lineLength = 0;
  let data: string[] = [];
  /**
   * The length of the current event's data; Infinity if the event is too long and therefore
   * skipped.
   */
  let dataLength = 0;
  let isAfterReturn = false;

  function addToLine(text: string): void {
    lineLength += text.length;
    if (lineLength + dataLength <= MAX_EVENT_LENGTH) line.push(text);
    else {
      line = [];
      data = [];
      dataLength = Number.POSITIVE_INFINITY;
    }
  }

  function endLine(): void {
    if (lineLength === 0) {
      endEvent();
      return;
    }
    const value = dataOf(line.length === 1 ? (line[0] as string) : line.join(""));
    if (value !== undefined) {
      data.push(value);
      // The line break counts too, so that a million empty lines are also too long.
      dataLength += value.length + 1;
    }
    line = [];
    lineLength = 0;
  }

  function endEvent(): void {
    if (data.length > 0) onData(data.length === 1 ? (data[0] as string) : data.join("\n"));
    data = [];
    dataLength = 0;
  }

  return {
    push(text) {
      if (text === "") return;
      let start = isAfterReturn && text.startsWith("\n") ? 1 : 0;
      isAfterReturn = text.endsWith("\r");
      let feed = indexOrEnd(text, "\n", start);
      let carriage = indexOrEnd(text, "\r", start);
      while (feed < text.length || carriage < text.length) {
        const end = Math.min(feed, carriage);
        if (end > start) addToLine(text.slice(start, end));
        endLine();
        start = carriage < feed && feed === carriage + 1 ? end + 2 : end + 1;
        if (feed < start) feed = indexOrEnd(text, "\n", start);
        if (carriage < start) carriage = indexOrEnd(text, "\r", start);
      }
      if (start < text.length) addToLine(text.slice(start));
    },
    end() {
      if (lineLength > 0) endLine();
      endEvent();
    },
  };
}

/**
 * @returns the index of the character at or after `start`; the length of the text if there is none
 */
function indexOrEnd(text: string, character: string, start: number): number {
  const index = text.indexOf(character, start);
  return index === -1 ? text.length : index;
}

/** Returns the value of a line such as `data: {}`; undefined if it is another field or a comment. */
function dataOf(line: string): string | undefined {
  if (!line.startsWith("data")) return undefined;
  if (line.length === 4) return "";
  if (line[4] !== ":") return undefined;
  return line.slice(line[5] === " " ? 6 : 5);
}
