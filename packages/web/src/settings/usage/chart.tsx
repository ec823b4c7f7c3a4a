/** Bars, one a day. The table beside it says the same, so it is a picture with a name. */
import { useEffect, useRef } from 'react'
import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { useIsDark } from '../../lib/theme.ts'

const HEIGHT = 190

interface Bars {
  /** Epoch milliseconds of midnight UTC. */
  days: readonly number[]
  /** Null: not known. */
  values: readonly (number | null)[]
}

export default function Chart(props: { label: string; bars: Bars; words: (value: number) => string }) {
  const { bars, words } = props
  const frame = useRef<HTMLDivElement>(null)
  const dark = useIsDark()
  useEffect(() => {
    const box = frame.current
    if (box === null) return
    const plot = new UPlot(
      plotOptions(box, bars, words),
      [bars.days.map((at) => at / 1_000), [...bars.values]],
      box,
    )
    const observer = new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height: HEIGHT }))
    observer.observe(box)
    return () => {
      observer.disconnect()
      plot.destroy()
    }
  }, [bars, words, dark])
  return <div ref={frame} role="img" aria-label={props.label} className="w-full overflow-hidden" />
}

/** Bars in the colours and fonts of the page. */
function plotOptions(box: HTMLElement, bars: Bars, words: (value: number) => string): UPlot.Options {
  const style = getComputedStyle(box)
  const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim()
  const axis = {
    stroke: colour('muted'),
    font: `11px ${style.fontFamily}`,
    ticks: { show: false },
    border: { show: false },
  }
  const paths = UPlot.paths.bars?.({ size: [0.7, 36], radius: 0.15 })
  return {
    width: box.clientWidth,
    height: HEIGHT,
    padding: [10, 6, 0, 0],
    tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1_000), 'Etc/UTC'),
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    legend: { show: false },
    scales: {
      x: { range: (_, from, to) => [from - 43_200, to + 43_200] },
      y: { range: (_, _from, to) => [0, to > 0 ? to * 1.08 : 1] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        space: 56,
        size: 26,
        incrs: [1, 2, 7, 14, 30, 61, 122, 365].map((days) => days * 86_400),
        values: (_, seconds) => seconds.map(dayWords),
      },
      {
        ...axis,
        grid: { stroke: colour('line'), width: 1 },
        size: (_, labels) => 14 + Math.max(0, ...(labels ?? []).map(({ length }) => length)) * 6.2,
        values: (_, values) => values.map(words),
      },
    ],
    hooks: {
      draw: [(drawn) => markUnknown(drawn, bars, { colour: colour('waiting'), font: style.fontFamily })],
    },
    series: [
      {},
      { fill: colour('accent'), stroke: colour('accent'), width: 0, paths, points: { show: false } },
    ],
  }
}

/** A day of which nothing is known is not a day of nothing. */
function markUnknown(plot: UPlot, { days, values }: Bars, look: { colour: string; font: string }): void {
  const { ctx } = plot
  ctx.save()
  ctx.fillStyle = look.colour
  ctx.textAlign = 'center'
  ctx.textBaseline = 'bottom'
  ctx.font = `600 ${12 * devicePixelRatio}px ${look.font}`
  for (const [nth, at] of days.entries())
    if (values[nth] === null)
      ctx.fillText('?', plot.valToPos(at / 1_000, 'x', true), plot.valToPos(0, 'y', true) - 2)
  ctx.restore()
}

function dayWords(seconds: number): string {
  return new Date(seconds * 1_000).toLocaleDateString('en-GB', {
    day: 'numeric',
    month: 'short',
    timeZone: 'UTC',
  })
}
