import type { NewTemplate, StoreName, Texts } from "./fields.ts";
import type { PackageManager } from "./package-manager.ts";
import type { Toolchain } from "./versions.ts";

/** The settings of a new project. All of them are valid. */
export interface ProjectOptions {
  readonly template: NewTemplate;
  readonly texts: Texts;
  readonly store: StoreName;
  readonly edgeWeir: string;
  readonly toolchain: Toolchain;
  readonly packageManager: PackageManager;
}
