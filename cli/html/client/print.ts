/** Opens everything that is folded while the page is printed. */
export function prepareForPrint(window: Window): void {
  let opened: HTMLDetailsElement[] = [];
  window.addEventListener("beforeprint", () => {
    opened = [
      ...window.document.querySelectorAll<HTMLDetailsElement>("details.printed:not([open])"),
    ];
    for (const details of opened) details.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });
}
