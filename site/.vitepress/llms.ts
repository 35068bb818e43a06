import { posix } from "node:path";

/**
 * Returns the text of llms.txt (https://llmstxt.org), with which language models find the pages: the list of the
 * documentation, with links to the Markdown of each page.
 *
 * @param index the text of docs/README.md
 * @param url where the files of the repository are, without a slash at the end
 */
export function llmsText(index: string, description: string, url: string): string {
  const [, ...sections] = index.split(/^## /m);
  const lists = sections
    .filter((section) => /^[^\n]*\n\n- \[/.test(section))
    .map((section) => `## ${section.trim()}`.replace(/\n {2}/g, " "))
    .map((list) =>
      list.replace(/\]\(([^)]+)\)/g, (_, link) => `](${url}/${posix.join("docs", link)})`),
    );
  return [`# Weir`, `> ${description}`, ...lists].join("\n\n").concat("\n");
}
