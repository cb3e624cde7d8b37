"""examples/index_k_bf16 over the index pool of a released SGLang, whose store kernel is compared
with the example's reference."""


def test_faults_are_named_in_the_released_pool_and_its_own_kernel_is_right(engine):
    chosen = ("--fault", "none", "wrong-page", "--dtype", "fp8", "bf16")
    ran = engine("sglang==0.5.23").run("index_k_example.py", *chosen)
    assert ran.returncode == 70, ran.stdout + ran.stderr
    lines = [" ".join(line.split()) for line in ran.stdout.splitlines()]
    begin = lines.index("on cpu, in SGLang's index pool")
    rows = ["stage send page-changed"]
    assert lines[begin + 2 : begin + 8] == [
        *("none fp8 - 0 - -", "wrong-page fp8 A, B 70 stage send page-misplaced", *rows),
        *("none bf16 - 0 - -", "wrong-page bf16 A, B 70 stage send page-misplaced", *rows),
    ]
    assert "right in all 2 cases" in lines
