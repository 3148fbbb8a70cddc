"""CycloneDX in XML: the shape of its JSON that conftest (cyclonedx-go) gives."""

import re

import pytest

from webhook import parsers
from webhook.parsers.errors import ParseError

BOM = """\
<?xml version="1.0" encoding="UTF-8"?>
<bom xmlns="http://cyclonedx.org/schema/bom/1.5" serialNumber="urn:uuid:3e671687-395b-41f5-a30f-a58921a69b79" version="2">
  <metadata>
    <timestamp>2024-01-02T03:04:05Z</timestamp>
    <lifecycles><lifecycle><phase>build</phase></lifecycle></lifecycles>
    <tools>
      <tool><vendor>Example</vendor><name>scanner</name><version>1.0</version></tool>
    </tools>
    <authors><author><name>Jane</name><email>jane@example.com</email></author></authors>
    <component type="application" bom-ref="app">
      <name>shop</name>
      <version>1.0</version>
    </component>
    <supplier>
      <name>Example</name>
      <url>https://example.com</url>
      <url>https://example.org</url>
      <contact><name>Joe</name></contact>
    </supplier>
    <properties><property name="team">payments</property></properties>
  </metadata>
  <components>
    <component type="library" bom-ref="pkg:npm/left-pad@1.3.0">
      <publisher>A</publisher>
      <group>org</group>
      <name>left-pad</name>
      <version>1.3.0</version>
      <description><![CDATA[pads & more]]></description>
      <scope>required</scope>
      <hashes><hash alg="SHA-1">9188560f22e0b73070d2efce670c74af2bdf30af</hash></hashes>
      <licenses><license bom-ref="l"><id>MIT</id><url>https://example.com/mit</url></license></licenses>
      <cpe>cpe:2.3:a:a:b:1</cpe>
      <purl>pkg:npm/left-pad@1.3.0</purl>
      <modified>false</modified>
      <externalReferences>
        <reference type="vcs"><url>https://example.com/left-pad.git</url><comment>c</comment><hashes><hash alg="MD5">aa</hash></hashes></reference>
      </externalReferences>
      <components><component type="file"><name>index.js</name><version></version></component></components>
    </component>
    <component type="library">
      <name>other</name>
      <licenses><expression>MIT OR Apache-2.0</expression></licenses>
      <licenses/>
      <pedigree>
        <ancestors><component type="library"><name>older</name></component></ancestors>
        <commits><commit><uid>7638417db6d59f3c431d3e1f261cc637155684cd</uid></commit></commits>
        <patches><patch type="backport"><diff><text content-type="text/plain" encoding="base64">ZGlmZg==</text><url>https://example.com/diff</url></diff></patch></patches>
        <notes>n</notes>
      </pedigree>
    </component>
  </components>
  <services>
    <service bom-ref="stock"><name>stock</name><endpoints><endpoint>https://example.com/stock</endpoint></endpoints><authenticated>true</authenticated><x-trust-boundary>false</x-trust-boundary></service>
  </services>
  <externalReferences><reference type="website"><url>https://example.com</url></reference></externalReferences>
  <dependencies>
    <dependency ref="app"><dependency ref="pkg:npm/left-pad@1.3.0"/><dependency ref="stock"/></dependency>
    <dependency ref="stock"/>
  </dependencies>
  <compositions><composition><aggregate>complete</aggregate><assemblies><assembly ref="app"/></assemblies></composition></compositions>
  <vulnerabilities>
    <vulnerability bom-ref="v">
      <id>CVE-2018-7489</id>
      <source><name>NVD</name><url>https://example.com/nvd</url></source>
      <ratings><rating><score>9.8</score><severity>critical</severity><method>CVSSv3</method><vector>AN/x</vector></rating></ratings>
      <cwes><cwe>184</cwe><cwe>502</cwe></cwes>
      <description>d</description>
      <advisories><advisory><title>t</title><url>https://example.com/a</url></advisory></advisories>
      <affects><target><ref>app</ref><versions><version><version>1.0</version><status>affected</status></version></versions></target></affects>
      <analysis><state>not_affected</state><responses><response>will_not_fix</response></responses></analysis>
    </vulnerability>
  </vulnerabilities>
</bom>
"""
SHAPE = {
    "bomFormat": "CycloneDX",
    "components": [
        {
            "bom-ref": "pkg:npm/left-pad@1.3.0",
            "components": [{"name": "index.js", "type": "file"}],
            "cpe": "cpe:2.3:a:a:b:1",
            "description": "pads & more",
            "externalReferences": [
                {
                    "comment": "c",
                    "hashes": [{"alg": "MD5", "content": "aa"}],
                    "type": "vcs",
                    "url": "https://example.com/left-pad.git",
                }
            ],
            "group": "org",
            "hashes": [{"alg": "SHA-1", "content": "9188560f22e0b73070d2efce670c74af2bdf30af"}],
            "licenses": [
                {"license": {"bom-ref": "l", "id": "MIT", "url": "https://example.com/mit"}}
            ],
            "modified": False,
            "name": "left-pad",
            "publisher": "A",
            "purl": "pkg:npm/left-pad@1.3.0",
            "scope": "required",
            "type": "library",
            "version": "1.3.0",
        },
        {
            "licenses": [],
            "name": "other",
            "pedigree": {
                "ancestors": [{"name": "older", "type": "library"}],
                "commits": [{"uid": "7638417db6d59f3c431d3e1f261cc637155684cd"}],
                "notes": "n",
                "patches": [
                    {
                        "diff": {
                            "text": {
                                "content": "ZGlmZg==",
                                "contentType": "text/plain",
                                "encoding": "base64",
                            },
                            "url": "https://example.com/diff",
                        },
                        "type": "backport",
                    }
                ],
            },
            "type": "library",
        },
    ],
    "compositions": [{"aggregate": "complete", "assemblies": ["app"]}],
    "dependencies": [
        {"dependsOn": ["pkg:npm/left-pad@1.3.0", "stock"], "ref": "app"},
        {"ref": "stock"},
    ],
    "externalReferences": [{"type": "website", "url": "https://example.com"}],
    "metadata": {
        "authors": [{"email": "jane@example.com", "name": "Jane"}],
        "component": {"bom-ref": "app", "name": "shop", "type": "application", "version": "1.0"},
        "lifecycles": [{"phase": "build"}],
        "properties": [{"name": "team", "value": "payments"}],
        "supplier": {
            "contact": [{"name": "Joe"}],
            "name": "Example",
            "url": ["https://example.com", "https://example.org"],
        },
        "timestamp": "2024-01-02T03:04:05Z",
        "tools": [{"name": "scanner", "vendor": "Example", "version": "1.0"}],
    },
    "serialNumber": "urn:uuid:3e671687-395b-41f5-a30f-a58921a69b79",
    "services": [
        {
            "authenticated": True,
            "bom-ref": "stock",
            "endpoints": ["https://example.com/stock"],
            "name": "stock",
            "x-trust-boundary": False,
        }
    ],
    "specVersion": "1.5",
    "version": 2,
    "vulnerabilities": [
        {
            "advisories": [{"title": "t", "url": "https://example.com/a"}],
            "affects": [{"ref": "app", "versions": [{"status": "affected", "version": "1.0"}]}],
            "analysis": {"response": ["will_not_fix"], "state": "not_affected"},
            "bom-ref": "v",
            "cwes": [184, 502],
            "description": "d",
            "id": "CVE-2018-7489",
            "ratings": [
                {"method": "CVSSv3", "score": 9.8, "severity": "critical", "vector": "AN/x"}
            ],
            "source": {"name": "NVD", "url": "https://example.com/nvd"},
        }
    ],
}


def of_members(text):
    bom = f'<bom xmlns="http://cyclonedx.org/schema/bom/1.4" version="1">{text}</bom>'
    return parsers.parse("cyclonedx", bom.encode())


def test_a_bom_has_the_shape_of_its_json():
    assert parsers.parse("cyclonedx", BOM.encode()) == SHAPE


PARTS = [
    ("", {}),
    ("<components/>", {}),
    ("<components><component><name>a</name></component></components>", {"components": [{"name": "a", "type": ""}]}),
    ('<metadata><tools><components><component type="application"><name>syft</name><version>1</version></component></components><services><service><name>s</name></service></services></tools></metadata>', {"metadata": {"tools": {"components": [{"name": "syft", "type": "application", "version": "1"}], "services": [{"name": "s"}]}}}),
    ('<components><component type="library"><name/><licenses><expression acknowledgement="declared">MIT</expression></licenses></component><component/></components>', {"components": [{"licenses": [{"acknowledgement": "declared", "expression": "MIT"}], "name": "", "type": "library"}, {"name": "", "type": ""}]}),
    ('<dependencies><dependency ref="a"><provides ref="b"/></dependency></dependencies>', {"dependencies": [{"provides": ["b"], "ref": "a"}]}),
    ('<compositions><composition><aggregate>complete</aggregate><dependencies><dependency ref="a"/></dependencies></composition></compositions><annotations><annotation bom-ref="x"><subjects><subject ref="a"/></subjects><text>t</text></annotation></annotations>', {"annotations": [{"bom-ref": "x", "subjects": ["a"], "text": "t"}], "compositions": [{"aggregate": "complete", "dependencies": ["a"]}]}),
    ("<metadata><manufacture><name>A</name><contact><name>B</name></contact><contact><name>C</name></contact></manufacture></metadata>", {"metadata": {"manufacture": {"contact": [{"name": "B"}, {"name": "C"}], "name": "A"}}}),
    ("<vulnerabilities><vulnerability><ratings><rating><score>9</score></rating></ratings><affects><target><ref>a</ref><versions><version><range>vers:x</range><status>affected</status></version></versions></target></affects></vulnerability></vulnerabilities>", {"vulnerabilities": [{"affects": [{"ref": "a", "versions": [{"range": "vers:x", "status": "affected"}]}], "id": "", "ratings": [{"score": 9}]}]}),
    ('<components><component type="library"><name>a</name><version>2</version><modified>1</modified><pedigree><patches><patch type="unofficial"><resolves><issue type="defect"><id>I-1</id><references><url>https://example.com</url></references></issue></resolves></patch></patches></pedigree><releaseNotes><type>major</type><title>t</title></releaseNotes></component></components>', {"components": [{"modified": True, "name": "a", "pedigree": {"patches": [{"resolves": [{"description": "", "id": "I-1", "references": ["https://example.com"], "type": "defect"}], "type": "unofficial"}]}, "releaseNotes": {"title": "t", "type": "major"}, "type": "library", "version": "2"}]}),
    ('<components><component type="library"><name>a</name><swhid>swh:1</swhid><swhid>swh:2</swhid><evidence><identity><field>purl</field><confidence>0.7</confidence><tools><tool ref="t"/></tools></identity><identity><field>name</field></identity><occurrences><occurrence bom-ref="o"><location>/x</location><line>3</line></occurrence></occurrences><callstack><frames><frame><module>m</module></frame></frames></callstack><copyright><text>A</text><text>B</text></copyright></evidence></component></components>', {"components": [{"type": "library", "name": "a", "swhid": ["swh:1", "swh:2"], "evidence": {"identity": [{"field": "purl", "confidence": 0.7, "tools": ["t"]}, {"field": "name"}], "occurrences": [{"bom-ref": "o", "location": "/x", "line": 3}], "callstack": {"frames": [{"module": "m"}]}, "copyright": [{"text": "A"}, {"text": "B"}]}}]}),
    ('<components><component type="data"><name>a</name><data><type>dataset</type><contents><attachment>x</attachment></contents><sensitiveData>s</sensitiveData></data><data><type>other</type></data><licenses><license><name>n</name><text>t</text></license></licenses><swid tagId="t" name="n" tagVersion="3" patch="true"/><modified/></component></components>', {"components": [{"type": "data", "name": "a", "data": [{"type": "dataset", "contents": {"attachment": {"content": "x"}}, "sensitiveData": ["s"]}, {"type": "other"}], "licenses": [{"license": {"name": "n", "text": {"content": "t"}}}], "swid": {"tagId": "t", "name": "n", "tagVersion": 3, "patch": True}, "modified": False}]}),
    ('<components><component type="library"><name>a</name><licenses><expression-detailed expression="MIT AND X11"><details license-identifier="MIT"><url>u</url></details></expression-detailed></licenses><releaseNotes><type>major</type><aliases><alias>b</alias></aliases><notes><note><locale>en</locale><text>n</text></note></notes></releaseNotes></component></components>', {"components": [{"type": "library", "name": "a", "licenses": [{"expression": "MIT AND X11", "expressionDetails": [{"licenseIdentifier": "MIT", "url": "u"}]}], "releaseNotes": {"type": "major", "aliases": ["b"], "notes": [{"locale": "en", "text": {"content": "n"}}]}}]}),
    ('<components><component type="cryptographic-asset"><name>a</name><cryptoProperties><assetType>algorithm</assetType><algorithmProperties><cryptoFunctions><cryptoFunction>sign</cryptoFunction></cryptoFunctions><certificationLevel>none</certificationLevel><classicalSecurityLevel>128</classicalSecurityLevel></algorithmProperties><protocolProperties><ikev2TransformTypes><ke><group>5</group></ke></ikev2TransformTypes><cryptoRefArray ref="q"/></protocolProperties></cryptoProperties></component></components>', {"components": [{"type": "cryptographic-asset", "name": "a", "cryptoProperties": {"assetType": "algorithm", "algorithmProperties": {"cryptoFunctions": ["sign"], "certificationLevel": ["none"], "classicalSecurityLevel": 128}, "protocolProperties": {"ikev2TransformTypes": {"esn": False, "ke": [{"group": 5}]}, "cryptoRefArray": ["q"]}}}]}),
    ('<services><service><provider/><name>a</name><data><dataflow name="n"><classification flow="inbound">PII</classification><source><url>u</url></source></dataflow><dataflow><classification flow="outbound">PIFI</classification></dataflow></data></service></services>', {"services": [{"name": "a", "provider": {"name": ""}, "data": [{"name": "n", "source": ["u"], "flow": "inbound", "classification": "PII"}, {"flow": "outbound", "classification": "PIFI"}]}]}),
    ('<formulation><formula><workflows><workflow><uid>w</uid><tasks><task><uid>t</uid><inputs><input><environmentVars><environmentVar name="A">1</environmentVar><value>B</value></environmentVars><data>x</data></input></inputs></task></tasks><taskDependencies><dependency ref="a"><dependency ref="b"/></dependency></taskDependencies></workflow></workflows></formula></formulation>', {"formulation": [{"workflows": [{"uid": "w", "tasks": [{"uid": "t", "inputs": [{"environmentVars": [{"name": "A", "value": "1"}, "B"], "data": {"content": "x"}}]}], "taskDependencies": [{"ref": "a", "dependsOn": ["b"]}]}]}]}),
    ('<declarations><attestations><attestation><assessor ref="as"/><map><requirement>r</requirement><claims><claim ref="c"/></claims></map><map><conformance><score/></conformance></map></attestation></attestations><claims><claim bom-ref="c"><evidence ref="e"/></claim></claims><evidence><evidence bom-ref="e"><propertyName>p</propertyName></evidence></evidence></declarations>', {"declarations": {"attestations": [{"assessor": "as", "map": [{"requirement": "r", "claims": ["c"]}, {"conformance": {"score": 0}}]}], "claims": [{"bom-ref": "c", "evidence": ["e"]}], "evidence": [{"bom-ref": "e", "propertyName": "p"}]}}),
    ("<metadata/>", {"metadata": {}}),
    ("<dependencies/>", {}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "members"), PARTS)
def test_parts_of_a_bom_have_the_shape_of_their_json(text, members):
    head = {"bomFormat": "CycloneDX", "specVersion": "1.4", "version": 1}

    assert of_members(text) == head | members


@pytest.mark.parametrize("text", [
    "<services><service><name>a</name><authenticated>often</authenticated></service></services>",
    "<vulnerabilities><vulnerability><ratings><rating><score>high</score></rating></ratings></vulnerability></vulnerabilities>",
    "<vulnerabilities><vulnerability><cwes><cwe>CWE-79</cwe></cwes></vulnerability></vulnerabilities>",
])  # fmt: skip
def test_numbers_and_booleans_that_are_none_are_refused(text):
    with pytest.raises(ParseError, match=r"invalid (boolean|number) '(often|high|CWE-79)'"):
        of_members(text)


@pytest.mark.parametrize(("text", "message"), [
    ('<bom xmlns="http://cyclonedx.org/schema/bom/1.4" version="x"/>', "invalid number 'x'"),
    ('<sbom xmlns="http://cyclonedx.org/schema/bom/1.4"/>', "expected element type <bom>"),
    ('<bom xmlns="http://example.com"/>', "unsupported namespace: 'http://example.com'"),
    ("[]", "invalid specification version"),
    ('{"specVersion": null}', "invalid specification version"),
    ("SBOM", "looking for beginning of value"),
])  # fmt: skip
def test_what_is_no_bom_is_refused(text, message):
    with pytest.raises(ParseError, match=re.escape(message)):
        parsers.parse("cyclonedx", text.encode())


def test_a_bom_without_a_version_is_of_version_0():
    bom = parsers.parse("cyclonedx", b'<bom xmlns="http://cyclonedx.org/schema/bom/1.4"/>')

    assert bom == {"bomFormat": "CycloneDX", "specVersion": "1.4", "version": 0}
