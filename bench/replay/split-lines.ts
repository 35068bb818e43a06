/** Splits a file into lines with node:readline, and prints the number of lines. */
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";

let lines = 0;
createInterface({ input: createReadStream(process.argv[2] as string) })
  // The event `line` is faster than `for await`.
  .on("line", () => {
    lines++;
  })
  .on("close", () => console.log(lines));
