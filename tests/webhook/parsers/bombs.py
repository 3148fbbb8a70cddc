"""Small files that want much: what each format can be made to write out, walk or scan."""

from __future__ import annotations

BOMBS: dict[str, tuple[str, str]] = {
    "dotenv references": (
        "dotenv",
        "A=xxxxxxxxxx\n"
        + "".join(f"{chr(66 + i)}={f'${{{chr(65 + i)}}}' * 7}\n" for i in range(14)),
    ),
    "dotenv quotes": ("dotenv", "A='" + "x\n" * 100_000),
    "hocon texts": (
        "hocon",
        "a0=xxxxxxxx\n" + "".join(f"a{i + 1}={f'${{a{i}}}' * 3}\n" for i in range(40)),
    ),
    "hocon objects": (
        "hocon",
        "a0={x=1}\n" + "".join(f"a{i + 1}={{x=${{a{i}}},y=${{a{i}}}}}\n" for i in range(40)),
    ),
    "hocon arrays": (
        "hocon",
        "a0=[1]\n" + "".join(f"a{i + 1}=[${{a{i}}},${{a{i}}}]\n" for i in range(40)),
    ),
    "xml defaults": (
        "xml",
        "<!DOCTYPE r [<!ATTLIST a "
        + " ".join(f'b{i} CDATA "{"x" * 1000}"' for i in range(100))
        + ">]><r>"
        + "<a/>" * 5000
        + "</r>",
    ),
    "xml many defaults": (
        "xml",
        "<!DOCTYPE a [<!ATTLIST b "
        + " ".join(f'x{i} CDATA "y"' for i in range(20_000))
        + ">]><a>"
        + "<b/>" * 200_000
        + "</a>",
    ),
    "hocon references": ("hocon", "a=1\n" + "b=${a}\n" * 200_000),
    "ini continuations": ("ini", "[a]\nb = x \\\n" + "yyyy \\\n" * 1_000_000),
    "toml keys": ("toml", "a." * 20_000 + "a=1\n"),
    "spdx text": ("spdx", "SPDXVersion: SPDX-2.3\nComment: <text>" + "a\n" * 200_000),
    "dockerfile continuations": ("dockerfile", "FROM a\nRUN a" + " \\\n b" * 2_000_000 + " \\\n"),
    "dockerfile comments": ("dockerfile", "FROM a\nRUN a \\\n" + "#c\n" * 200_000),
    "dockerfile heredocs": ("dockerfile", "FROM a\nRUN" + " <<E" * 20_000 + "\n"),
    "dockerfile words": ("dockerfile", "FROM a\nENV" + " a=b" * 100_000),
    "properties lines": ("properties", "a=" + "x\\\n" * 200_000),
    "ini lines": ("ini", "[a]\nb=" + "x\\\n" * 200_000),
    "hcl2 lists": ("hcl2", "a = " + "[" * 100_000),
    "hcl2 brackets": ("hcl2", "a = " + "(1+" * 20_000),
    "hcl2 templates": ("hcl2", "a = " + '"${' * 20_000),
    "hcl2 heredoc": ("hcl2", "a = <<E\n" + "x\n" * 200_000),
    "hcl2 comments": ("hcl2", "a = 1 " + "/*" * 200_000),
    "hcl1 comments": ("hcl1", "a = 1 " + "/*" * 200_000),
    "jsonc comments": ("jsonc", "/*" * 200_000),
    "jsonnet text": ("jsonnet", "std.repeat('x', 3000000000)"),
    "jsonnet loop": ("jsonnet", "std.foldl(function(a, b) a + b, std.range(1, 1000000000), 0)"),
    "edn lists": ("edn", "(" * 200_000),
    "toml tables": ("toml", "[a" + ".a" * 20_000 + "]\nb=1"),
    "toml digits": ("toml", "a = " + "9" * 100_000),
    # Texts that are rewritten for a reader of TOML 1.0.
    "toml open texts": ("toml", '\\"""\n' * 100_000),
    "toml open lines": ("toml", '\\"' * 200_000),
    "toml open literals": ("toml", "a = '\n" * 100_000),
    "toml escapes": ("toml", 'a = "' + "\\x41\\e" * 100_000 + '"'),
    "toml clocks": ("toml", "a = [" + "12:30, " * 100_000 + "]"),
    "toml clocks in a row": ("toml", "a = " + "12:30:" * 100_000),
    "toml inline lines": ("toml", "a = {\n" + "#,}\n" * 200_000 + "b = 1,\n}"),
    "toml inline commas": ("toml", "a = {b = 1" + ",\n" * 200_000 + "}"),
    "toml inline spaces": ("toml", "a = {b = 1" + f",{' ' * 50_000}#\n" * 100 + "}"),
    "toml inline tables": ("toml", "a = " + "{\nb = " * 50_000),
    "toml inline fields": (
        "toml",
        "a = {\n" + "".join(f"b{i} = 1,\n" for i in range(50_000)) + "}",
    ),
    "toml tables within": ("toml", "a = " + "{\nb = " * 300 + "1" + ",\n}" * 300),
    "toml lists": ("toml", "a = {\nb = " + "[" * 100_000),
    "json digits": ("json", "9" * 100_000),
    "yaml digits": ("yaml", "a: " + "9" * 100_000),
    "hcl2 digits": ("hcl2", "a = " + "9" * 100_000),
    "edn digits": ("edn", "9" * 100_000),
    "ini digits": ("ini", "[a]\nb = " + "9" * 100_000),
    "yaml aliases": (
        "yaml",
        "a0: &a0 [x]\n"
        + "".join(f"a{i + 1}: &a{i + 1} [{','.join([f'*a{i}'] * 5)}]\n" for i in range(12)),
    ),
    "codeowners lines": ("codeowners", "a @b\n" * 200_000),
    "ignore lines": ("ignore", "a\n" * 200_000),
    "nginx blocks": ("nginx", "a {" * 20_000),
}
