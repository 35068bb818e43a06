/** Shows the buttons that copy a text, because they do nothing without this script. */
export function addCopyButtons(root: Document): void {
  for (const button of root.querySelectorAll<HTMLButtonElement>("button[data-copy]")) {
    const source = root.getElementById(button.dataset.copy ?? "");
    const output = button.parentElement?.querySelector("output");
    if (!source || !output) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      output.textContent = (await copied(source.textContent ?? ""))
        ? "Copied."
        : select(root, source);
    });
  }
}

/** Returns false if the browser does not allow it, as some do for pages from a disk. */
async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

function select(root: Document, source: HTMLElement): string {
  root.getSelection()?.selectAllChildren(source);
  return "The rule is selected: copy it with Ctrl+C or ⌘C.";
}
