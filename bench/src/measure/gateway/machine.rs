//! The machine of a measurement, by Linux' `/proc`.

use std::fs::read_to_string;

/// Describes processor, memory and kernel of this machine in a sentence.
pub(super) fn told() -> String {
    let read = |path| read_to_string(path).unwrap_or_default();
    let (cpu, memory, kernel, load) =
        (read("/proc/cpuinfo"), read("/proc/meminfo"), read("/proc/sys/kernel/osrelease"), read("/proc/loadavg"));
    let model = field(&cpu, "model name").unwrap_or("a processor without a name");
    let gibibytes = field(&memory, "MemTotal")
        .and_then(|text| text.trim_end_matches("kB").trim().parse::<u64>().ok())
        .map_or(0, |kilobytes| kilobytes >> 20);
    let count = cpu.lines().filter(|line| line.starts_with("processor")).count();
    let load = load.split(' ').next().unwrap_or("?").to_owned();
    format!("{count} × {model}, {gibibytes} GiB, Linux {}; load average {load} at the end.", kernel.trim())
}

/// Returns the text after a name and a colon.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_what_follows_its_name() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC\n";
        assert_eq!((field(text, "model name"), field(text, "flags")), (Some("AMD EPYC"), None));
        assert!(told().contains("Linux "));
    }
}
