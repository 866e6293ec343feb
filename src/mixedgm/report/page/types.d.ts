/** What the Python side writes into the page: `mixedgm.report.document.content`. */

export type Sign = "+" | "-" | "";
export type Cell = string | number | boolean | null;

export interface Column {
  name: string;
  kind: string;
  role: "target" | "covariate";
  x: number;
  y: number;
  values: number;
  transformed: boolean;
  /** Place in `graph.groups`, or -1. */
  group: number;
  ring: number | null;
  measures: Record<string, number>;
}

export interface Kind {
  name: string;
  shape: "circle" | "square" | "diamond" | "hexagon" | "pentagon";
  size: number;
  fill: string;
  line: string;
  measure: string;
}

/** An edge, or (with a moderator) how one varies. */
export interface Edge {
  a: number;
  b: number;
  /** From 0 to 1: what is drawn. */
  strength: number;
  /** How far its line bends aside, as a share of its length. */
  bend?: number;
  sign: Sign;
  partial?: number;
  directed?: boolean;
  moderator?: number;
  ridge?: boolean;
  probability?: number;
  frequency?: number;
  says?: string;
}

/** `mixedgm.pictures.network.sizes.Scale`: what decides widths (in points) and opacities of lines. */
export interface ScaleLook {
  maximum: number;
  cut: number | null;
  thinnest: number;
  receded: number;
  widest: number;
  faintest: number;
  faint: number;
  solid: number;
}

export interface Graph {
  nodes: Column[];
  kinds: Kind[];
  groups: Group[];
  edges: Edge[];
  scale: ScaleLook & { keys: number[] };
  refitted: boolean;
}

export interface Effect {
  from: number;
  to: number;
  values: (number | string)[];
  levels: string[];
  predicted: number[][];
  observed: (number | null)[][];
  rows: (number | null)[];
}

export interface Parameters {
  rowTitle: string;
  columnTitle: string;
  rows: string[];
  columns: string[];
  values: (number | null)[][];
  hidden: number;
  /** Rows of the table behind every value; empty where that is not known. */
  behind: (number | null)[][];
}

export interface EdgeDetails {
  parameters: Parameters;
  effects?: Effect[];
}

export interface Histogram {
  counts: number[];
  edges: number[];
  names: string[];
  missing: number;
  zeros: number;
  hidden: number;
}

/** Source, target, moderator or -1, sign, first step, strengths from there on. */
export type PathLine = [number, number, number, Sign, number, number[]];

export interface Scores {
  label: string;
  limitLabel: string;
  values?: (number | null)[];
  errors?: (number | null)[];
  limit?: (number | null)[];
}

export interface Path {
  lams: number[];
  nEdges: number[];
  converged: boolean[];
  lines: PathLine[];
  nLines: number;
  chosen: number | null;
  lam: string;
  criterion: string | null;
  byTests: boolean;
  scores: Scores | null;
  lamMax: number;
}

export interface TableColumn {
  name: string;
  label: string;
  meaning: string;
  type: "text" | "number" | "truth";
  cells: Cell[];
}

export interface Table {
  key: string;
  title: string;
  note: string;
  columns: TableColumn[];
  about: number[][];
}

export interface Flag {
  about: number[];
  names: string[];
  where: string;
  size: string;
}

/** Flags that mean the same, and what to do about all of them. */
export interface Remedy {
  meaning: string;
  text: string;
  toDo: string;
  flags: Flag[];
  hidden: number;
}

/** The opening: what was found, and what an edge means. */
export interface Findings {
  sentences: string[];
  meaning: string;
}

/** A group of columns with its colour on a light ground. */
export interface Group {
  name: string;
  colour: string;
}

export interface Answer {
  key: string;
  title: string;
  status: "good" | "look" | "bad" | "unknown";
  summary: string;
  lines: string[];
  remedies?: Remedy[];
}

export interface Methods {
  text: string;
  bibtex: string;
  facts: [string, string][];
}

export interface Content {
  title: string;
  source: string;
  version: string;
  whole: boolean;
  graph: Graph;
  edgeDetails: (EdgeDetails | null)[];
  columnDetails: { histogram: Histogram | null }[];
  hasTable: boolean;
  findings?: Findings;
  facts?: [string, string][];
  path?: Path | null;
  tables?: Table[];
  trust?: Answer[];
  methods?: Methods;
}

/** Two columns with a line between them: the edge, and how it varies. */
export interface Link {
  a: number;
  b: number;
  /** From 0 to 1; 0 where the columns are only related at some values of a moderator. */
  strength: number;
  sign: Sign;
  directed: boolean;
  varies: boolean;
  /** Whether the data do not determine its size. */
  ridge: boolean;
  bend: number;
  /** Place in `graph.edges`; -1 along the path, and for a pair that only varies. */
  edge: number;
}

export type Selection = { node: number } | { a: number; b: number } | null;
