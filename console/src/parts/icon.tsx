/** Line drawings of 20 by 20, in the colour of the text. */
const PATHS = {
  list: "M3.5 5.5h13M3.5 10h13M3.5 14.5h8",
  map: "M4 4.5h4.5v4.5H4zM11.500 11h4.500v4.500h-4.500zM8.500 6.750h5.250V11M6.250 9v4.250h5.250",
  clock: "M10 3.250a6.750 6.750 0 1 0 0 13.500 6.750 6.750 0 0 0 0-13.500M10 6v4.250l2.750 1.750",
  leave: "M8 3.750H4.750v12.500H8M8.500 10h7.750M13.250 7l3 3-3 3",
  plus: "M10 4.500v11M4.500 10h11",
  search: "M8.750 3.750a5 5 0 1 0 0 10 5 5 0 0 0 0-10M12.500 12.500l4 4",
  close: "M5 5l10 10M15 5L5 15",
  back: "M12 4.500L6.500 10l5.500 5.500",
  warning: "M10 3.500l7.250 12.750H2.750zM10 8.250v3.500M10 13.900v.200",
  move: "M3.500 10h12.500M12 6l4 4-4 4",
  check: "M4.500 10.500l3.750 3.750 7.250-8",
  pause: "M7 4.500v11M13 4.500v11",
  scales: "M10 3.500v13M6.500 16.500h7M4 6.500h12M4 6.500l-2 5h4zM16 6.500l-2 5h4z",
  play: "M6.500 4.500l9 5.500-9 5.500z",
  tree: "M10 3.500v4M5 12.500v-2.500h10v2.500M10 7.500v2.500M3 12.500h4v4H3zM13 12.500h4v4h-4z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 20 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
